// Package portable knows which names of files some system cannot hold, and which
// two some system takes for one.
//
// It looks at one name at a time, never at a path, and touches no disk.
package portable
