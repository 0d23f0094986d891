package store

import (
	"bytes"
	"fmt"
)

// FormatClosure is the listing of several entries in one text, which
// [Store.ParseClosure] reads: those of a lockfile, so that laying them out again
// opens one file. It is for entries that were just found sound.
func FormatClosure(entries []Entry) []byte {
	var out []byte
	for _, e := range entries {
		out = append(out, e.Integrity.String()...)
		out = append(out, '\n')
	}
	return out
}

// ParseClosure reads what FormatClosure made. That the entries are still there
// shows when they are used.
func (s *Store) ParseClosure(data []byte) (map[Integrity]Entry, error) {
	entries := map[Integrity]Entry{}
	for line := range bytes.Lines(data) {
		id, err := ParseIntegrity(string(line))
		if err != nil {
			return nil, err
		}
		entry, ok := s.Get(id)
		if !ok {
			return nil, fmt.Errorf("%s is not in the store", id)
		}
		entries[id] = entry
	}
	return entries, nil
}
