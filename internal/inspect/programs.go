package inspect

import (
	"fmt"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/program"
)

// programs looks at the rows that are programs of packages, as a start would. A
// row that an expression may switch off is left out: what it says is known at a
// start only.
func (i *inspection) programs() {
	if i.BuiltIn == nil {
		return // that harness runs no programs
	}
	first := ""
	mayBeOff := func(compose.Row, compose.Expr) bool { return true }
	for row := range i.Tree.Enabled(mayBeOff) {
		if row.Entry == nil || i.BuiltIn(row.Name()) {
			continue
		}
		pkg, found, err := installation.Find(i.Options.Profile.Dir, row.Name())
		if err != nil || !found {
			continue
		}
		_, is, err := program.Of(pkg)
		f := check.Finding{Severity: check.Error, Row: rowID(row), Subject: pkg.Name}
		switch {
		case !is || err != nil && entryMissing(pkg, "") != "": // [RowNoEntry] tells of it
			continue
		case err != nil:
			f.Code = ProgramRefused
			f.Message = fmt.Sprintf("%s cannot run: %v", describe(row), err)
			f.Remedy = fault.Hint(err)
			if f.Remedy == "" {
				f.Remedy = "ask the author of the package, or take the row out"
			}
		case first == "":
			first = describe(row)
			continue
		default:
			f.Code = ProgramTwice
			f.Message = fmt.Sprintf("%s is a program, as %s is; a profile runs one program at a time", describe(row), first)
			f.Remedy = "switch one of them off"
		}
		i.place(&f, i.births[row.Entry], "name")
		i.add(f)
	}
}
