package check

import (
	"errors"
	"fmt"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// LayerError is the finding about a layer that could not be read: err is a
// *compose.SyntaxError, *compose.ShapeError or *compose.EscapeError, or says
// why its file cannot be read.
func LayerError(kind compose.Kind, label string, err error) Finding {
	f := Finding{Code: Unreadable, Severity: Error, Layer: label, Blocks: true, Subject: "layer"}
	if kind.User() {
		f.File = label
	}
	if syntax, ok := errors.AsType[*compose.SyntaxError](err); ok {
		f.Code, f.File, f.Line, f.Column = Syntax, syntax.File, syntax.Line, syntax.Column
		f.Message, f.Remedy = "the text cannot be read: "+syntax.Problem, syntax.Remedy
		return f
	}
	if shape, ok := errors.AsType[*compose.ShapeError](err); ok {
		f.Code, f.File, f.Line, f.Column = NotPatches, shape.File, shape.Line, shape.Column
		f.Remedy = shape.Remedy
		switch {
		case shape.Fault == compose.NotAMapping:
			f.Message = fmt.Sprintf("entry %d is no mapping, and so no patch", shape.Entry)
		case shape.Fault == compose.InsertNotRows:
			f.Message = fmt.Sprintf("entry %d inserts what is no list of rows", shape.Entry)
		case shape.Line == 0:
			f.Line, f.Column = 1, 1
			f.Message = "the file holds no patches: it is empty, or has comments only"
		default:
			f.Message = "the file is no list of patches"
		}
		return f
	}
	if escape, ok := errors.AsType[*compose.EscapeError](err); ok {
		f.Code, f.File, f.Line, f.Column = PathLeaves, escape.File, escape.Line, escape.Column
		f.Message = fmt.Sprintf("the path %q leaves the package", escape.Path)
		f.Remedy = "name a file inside the package"
		return f
	}
	f.Message, f.Remedy = err.Error(), fault.Hint(err)
	if cause, ok := strings.CutPrefix(f.Message, "failed to read overlay "+label+": "); ok {
		f.Message = "the file cannot be read: " + cause
	}
	if f.Remedy == "" && kind == compose.PatchLayer {
		f.Remedy = "name a file that is there with --patch"
	}
	return f
}
