package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dsh/internal/boot/host"
	"dsh/internal/compose/jsexpr"
)

// homePath is the function that every expression has.
const homePath = "dshHomePath"

// globals are the names of JavaScript that the child has, and process.
var globals = strings.Fields(`
	undefined NaN Infinity globalThis arguments eval isFinite isNaN parseFloat parseInt
	decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape
	Object Function Boolean Symbol Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError
	Number BigInt Math Date String RegExp Array Map Set WeakMap WeakSet
	ArrayBuffer DataView JSON Promise Proxy Reflect
	Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float32Array Float64Array
	BigInt64Array BigUint64Array process`)

// processMembers are the members of process that the child has.
var processMembers = []string{"env", "platform", "cwd"}

// commonJS are names that only modules have.
var commonJS = []string{"require", "module", "exports", "__dirname", "__filename"}

// refuse says what an expression reads that is not there.
func refuse(text string, scope host.Scope) error {
	e, err := jsexpr.Parse(text)
	if wrong, ok := errors.AsType[*jsexpr.SyntaxError](err); ok {
		return newError(text, fmt.Sprintf("line %d, column %d: %s", wrong.Line, wrong.Column, wrong.Problem), "")
	}
	if err != nil {
		return newError(text, err.Error(), "")
	}
	for _, name := range e.Globals {
		if !slices.Contains(globals, name) {
			return newError(text, "reads "+name+", which expressions do not have in this host", "")
		}
	}
	for _, member := range e.Process {
		if !slices.Contains(processMembers, member) {
			return newError(text, "reads process."+member+"; of process, expressions have env, platform and cwd() in this host", "")
		}
	}
	for _, service := range e.Services {
		_, known := scope.Services[service]
		switch {
		case known || service == homePath || service == "get":
		case slices.Contains(commonJS, service):
			return newError(text, "reads "+service+", which expressions do not have in this host", "")
		case slices.Contains(scope.Others, service):
			return newError(text, "reads the service "+service+", which the row does not inject", "add "+service+" to `inject` of the row")
		case slices.Contains(e.Asked, service): // and there is none
		default:
			return newError(text, "reads "+service+", which is no service of the tree", "")
		}
	}
	return nil
}
