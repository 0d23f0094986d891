package patchedit

import "bytes"

// modelinePrefix begins the comment that tells YAML language servers where
// the schema of a file is.
const modelinePrefix = "# yaml-language-server:"

// Modeline puts `# yaml-language-server: $schema=<schema>` at the top of a
// text, or in the place of the one that is there among the comments at the top.
func Modeline(text []byte, schema string) []byte {
	line := modelinePrefix + " $schema=" + schema
	body := len(text) - len(bytes.TrimPrefix(text, bom))
	for start := body; start < len(text); start = nextLine(text, start) {
		end := lineEnd(text, start)
		content := bytes.TrimSpace(text[start:end])
		if bytes.HasPrefix(content, []byte(modelinePrefix)) {
			at := start + bytes.IndexByte(text[start:end], '#')
			return splices{{at, at + len(content), line}}.apply(text)
		}
		if len(content) > 0 && content[0] != '#' && content[0] != '%' && string(content) != "---" {
			break
		}
	}
	return splices{{body, body, line + lineBreak(text)}}.apply(text)
}
