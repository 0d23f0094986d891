package npmtest

import "bytes"

// file is one file of an archive.
type file struct {
	name string
	data []byte
}

// parseTxtar reads the txtar format: a comment, then files, each after a line "-- NAME --".
func parseTxtar(data []byte) (comment []byte, files []file) {
	for line := range bytes.Lines(data) {
		if name, ok := markerName(line); ok {
			files = append(files, file{name: name})
			continue
		}
		if len(files) == 0 {
			comment = append(comment, line...)
			continue
		}
		last := &files[len(files)-1]
		last.data = append(last.data, line...)
	}
	return comment, files
}

// markerName gives the name of a line "-- NAME --".
func markerName(line []byte) (string, bool) {
	line = bytes.TrimRight(line, "\r\n")
	rest, ok := bytes.CutPrefix(line, []byte("-- "))
	if !ok {
		return "", false
	}
	name, ok := bytes.CutSuffix(rest, []byte(" --"))
	name = bytes.TrimSpace(name)
	return string(name), ok && len(name) > 0
}
