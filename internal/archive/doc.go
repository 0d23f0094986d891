// Package archive is the format of the file in which a profile travels: a gzipped
// tar whose first member lists all others with their hashes, the same bytes for
// the same content.
//
// It knows neither disks nor profiles: it reads and writes streams, and does not
// say what belongs into an archive or what becomes of it.
package archive
