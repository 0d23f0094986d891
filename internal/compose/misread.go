package compose

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// cursor finds places in a text. It is quick for places that come in order.
type cursor struct {
	text         []byte
	offset       int
	line, column int // of offset, counted from 0
}

// at is the text from a line and column on, counted from 1. It is empty where
// the text has no such place.
func (c *cursor) at(line, column int) []byte {
	line, column = line-1, column-1
	if c.line > line || c.line == line && c.column > column {
		c.offset, c.line, c.column = 0, 0, 0
	}
	for c.offset < len(c.text) && (c.line < line || c.line == line && c.column < column) {
		b := c.text[c.offset]
		_, size := utf8.DecodeRune(c.text[c.offset:])
		c.offset += size
		c.column++
		if b == '\n' || b == '\r' && (c.offset == len(c.text) || c.text[c.offset] != '\n') {
			c.line, c.column = c.line+1, 0
		}
	}
	if c.line != line || c.column != column {
		return nil
	}
	return c.text[c.offset:]
}

// misread is the problem of a node that yaml.v3 reads in another way than
// js-yaml, which mostly refuses it.
func (d *decoder) misread(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		if word := nodeWord(d.cursor.at(n.Line, n.Column)); len(word) > 1 && string(word[1:]) != n.Value {
			return refuse(n, "quote it if the * belongs to the value: "+quoted(string(word)),
				"alias %s names no anchor above", word)
		}
	case n.Anchor != "":
		for rest := d.cursor.at(n.Line, n.Column); ; rest = behindWord(rest) {
			word := nodeWord(rest)
			if len(word) == 0 || word[0] != '!' && word[0] != '&' {
				break
			}
			if word[0] == '&' && string(word[1:]) != n.Anchor {
				return refuse(n, "write a space behind the name, or quote what the & belongs to",
					"the anchor %s is not named with letters, digits, - and _ alone", word)
			}
		}
	}
	if n.Kind == yaml.ScalarNode && n.Style&^yaml.TaggedStyle == 0 && d.isBareSign(n) {
		return refuse(n, "quote it: "+quoted(restore(n.Value)), "a %.1s by itself is no value", restore(n.Value))
	}
	return nil
}

// isBareSign says whether a plain scalar is a dash or question mark by itself,
// which js-yaml reads only as a key.
func (d *decoder) isBareSign(n *yaml.Node) bool {
	sign := "-"
	if strings.HasPrefix(n.Value, plainQuestion) {
		sign = plainQuestion
		if len(n.Value) > len(sign) && n.Value[len(sign)] == ' ' {
			return true
		}
	}
	if n.Value != sign {
		return false
	}
	rest := d.cursor.at(n.Line, n.Column)
	for len(rest) > 0 && (rest[0] == '!' || rest[0] == '&') {
		rest = behindWord(rest)
	}
	return bytes.HasPrefix(rest, []byte(sign)) && len(rest) > len(sign) && rest[len(sign)] != ':'
}

// nodeWord is the anchor, alias or tag that text begins with, as far as
// js-yaml reads it.
func nodeWord(text []byte) []byte {
	end := bytes.IndexAny(text, " \t\r\n,[]{}")
	if end < 0 {
		end = len(text)
	}
	return text[:end]
}

// behindWord is what follows the word that text begins with.
func behindWord(text []byte) []byte {
	return bytes.TrimLeft(text[len(nodeWord(text)):], " \t\r\n")
}
