// Package workspace is the text of a pnpm-workspace.yaml: what stands in it, and
// edits that change only the bytes concerned.
//
// It is not what the settings mean; who reads one knows that.
package workspace
