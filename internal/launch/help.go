package launch

import (
	"strings"
	"unicode/utf8"
)

// helpWidth is the widest line of the help, in columns.
const helpWidth = 80

// row is one line of a section: a term and what it means.
type row struct{ term, text string }

// HelpText is the launcher's help. It lists those of the commands that have a
// summary, in the order given.
func HelpText(commands []Syntax) string {
	var h strings.Builder
	h.WriteString(`Usage: dsh [--profile] <name> [options] [app-args...]
       dsh plugin --profile <name> <pnpm-args...>
       dsh [dsh-options] <command> [arguments...]

Boot a profile: a stack of plugin packages and your own changes to it, composed
into one configuration.

dsh runs it by itself. Rows that need Node.js run on a harness that dsh
installation add installs.
`)
	writeSection(&h, "Arguments:", []row{
		{"args", "arguments of the app; they begin at the first word that is no option below, or after --"},
	})
	writeSection(&h, "Options:", optionRows(false))
	writeSection(&h, "Options of dsh, before the profile or the command:", optionRows(true))
	writeSection(&h, "Commands (dsh <command> --help tells more):", commandRows(commands))
	h.WriteString(`
Examples:
  # boot the shipped web profile
  dsh web

  # recreate rescue from the shipped web template, then boot it
  dsh rescue --from-default-profile web

  # give the headless app one task
  dsh headless "explain this folder"

  # boot tui with one more patch file for this run
  dsh tui --patch ./extra.yml

  # hand --resume to the app of tui
  dsh tui --resume 4f2a

  # the options of the web app itself
  dsh web --help

  # add a package to a profile
  dsh plugin --profile tui add <package>
`)
	writeSection(&h, "Environment:", []row{
		{"DSH_HOME", "where dsh keeps everything (otherwise ~/.dsh)"},
		{profileVariable, `the profile of a dump or a command that names none (otherwise what dsh profile use chose, or "` + DefaultProfile + `"); never booted by itself`},
		{installationVariable, "the same as --installation"},
	})
	writeSection(&h, "Exit codes:", []row{
		{"0", "done"},
		{"1", "wrong usage, and whatever stops a boot or a dump"},
		{"2", "the layers do not compose"},
		{"3", "a package is missing, broken or not what was locked"},
		{"4", "network"},
		{"5", "refused for safety"},
		{"6", "permissions, a full disk, a file in use"},
		{"127", "a program that dsh needs is missing"},
		{"130, 143", "interrupted, terminated"},
	})
	return h.String()
}

func optionRows(ours bool) []row {
	var rows []row
	for i := range options {
		if o := &options[i]; o.ours == ours {
			rows = append(rows, row{o.flags(), o.help})
		}
	}
	return rows
}

func commandRows(commands []Syntax) []row {
	var rows []row
	for _, c := range commands {
		if c.Summary != "" {
			rows = append(rows, row{c.Names[0], c.Summary})
		}
	}
	return rows
}

// writeSection writes a title and its rows, meanings in one column; nothing
// when there are no rows.
func writeSection(h *strings.Builder, title string, rows []row) {
	if len(rows) == 0 {
		return
	}
	column := 0
	for _, r := range rows {
		column = max(column, len("  ")+utf8.RuneCountInString(r.term)+len("  "))
	}
	h.WriteString("\n" + title + "\n")
	for _, r := range rows {
		indent := "  " + r.term + strings.Repeat(" ", column-len("  ")-utf8.RuneCountInString(r.term))
		for _, line := range wrap(r.text, helpWidth-column) {
			h.WriteString(indent + line + "\n")
			indent = strings.Repeat(" ", column)
		}
	}
}

// wrap breaks text between words so that no line is wider than width, unless
// one word is.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
