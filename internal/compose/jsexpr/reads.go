package jsexpr

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

// thing is an object of the program that expressions read from.
type thing uint8

const (
	something   thing = iota // of which nothing is known
	context                  // ctx, the row's context
	global                   // globalThis
	process                  // Node.js's process
	environment              // process.env
	loader                   // ctx.loader, which knows all rows
)

// reader collects what a program reads.
type reader struct {
	env, services map[string]bool
	read          map[string]bool // those of services that are not only asked for
	globals       map[string]bool
	process       map[string]bool // members
	tree          bool
	bound         map[*js.Var]thing    // what the program's own variables hold
	asked         map[*js.DotExpr]bool // ctx.get, where it is clear what it is asked for
}

func readsOf(ast *js.AST) *reader {
	r := &reader{
		env: map[string]bool{}, services: map[string]bool{}, read: map[string]bool{}, globals: map[string]bool{}, process: map[string]bool{},
		bound: map[*js.Var]thing{}, asked: map[*js.DotExpr]bool{},
	}
	// The walk sees the body of a function before its parameters, and what it
	// finds it may find twice.
	js.Walk(r, ast)
	js.Walk(r, ast)
	return r
}

// Enter is called for each node of the program.
func (r *reader) Enter(n js.INode) js.IVisitor {
	switch n := n.(type) {
	case *js.Var:
		r.name(n)
	case *js.CallExpr:
		if dot, service := r.get(n); dot != nil {
			r.asked[dot] = true
			r.services[service] = true
		}
	case *js.DotExpr:
		if name, ok := dotName(n); ok && !r.asked[n] {
			r.record(r.of(n.X), name)
		}
	case *js.IndexExpr:
		if name, ok := literal(n.Y); ok {
			r.record(r.of(n.X), name)
		}
	case *js.BinaryExpr:
		switch n.Op {
		case js.InToken:
			if name, ok := literal(n.X); ok {
				r.record(r.of(n.Y), name)
			}
		case js.EqToken:
			r.assign(n.X, r.of(n.Y))
		}
	case *js.BindingElement:
		if n.Default != nil {
			r.bind(n.Binding, r.of(n.Default))
		}
	case *js.MethodDecl:
		js.Walk(r, n.Name.Computed) // which the walk leaves out
	case *js.Field:
		js.Walk(r, n.Name.Computed)
	}
	return r
}

// Exit is called when all below a node has been seen.
func (r *reader) Exit(js.INode) {}

// name looks at a variable.
func (r *reader) name(v *js.Var) {
	v = root(v)
	name := identifier(v.Data)
	switch {
	case v.Decl != js.NoDecl || strings.HasPrefix(name, "#") || name == "ctx":
	case slices.Contains(globals, name):
		r.globals[name] = true
	default:
		r.record(context, name)
	}
}

// onlyAsked is the services that the program asks for and does not read
// otherwise, sorted.
func (r *reader) onlyAsked() []string {
	var asked []string
	for service := range r.services {
		if !r.read[service] {
			asked = append(asked, service)
		}
	}
	slices.Sort(asked)
	return asked
}

// root is the variable that v is after all.
func root(v *js.Var) *js.Var {
	for v.Link != nil {
		v = v.Link
	}
	return v
}

// record notes that a member of a thing is read.
func (r *reader) record(of thing, member string) {
	switch {
	case of == context:
		r.services[member], r.read[member] = true, true
	case of == process:
		r.process[member] = true
	case of == environment:
		r.env[member] = true
	case of == loader && member == "entries":
		r.tree = true
	}
}

// of is the thing that an expression is.
func (r *reader) of(e js.IExpr) thing {
	switch e := e.(type) {
	case *js.Var:
		return r.variable(e)
	case *js.GroupExpr:
		return r.of(e.X)
	case *js.DotExpr:
		if name, ok := dotName(e); ok {
			return member(r.of(e.X), name)
		}
	case *js.IndexExpr:
		if name, ok := literal(e.Y); ok {
			return member(r.of(e.X), name)
		}
	case *js.CallExpr:
		if dot, service := r.get(e); dot != nil {
			return member(context, service)
		}
	case *js.BinaryExpr:
		if e.Op == js.NullishToken || e.Op == js.OrToken {
			if of := r.of(e.X); of != something {
				return of
			}
			return r.of(e.Y)
		}
	}
	return something
}

func (r *reader) variable(v *js.Var) thing {
	v = root(v)
	if of, ok := r.bound[v]; ok || v.Decl != js.NoDecl {
		return of
	}
	switch name := identifier(v.Data); name {
	case "ctx":
		return context
	case "process", "globalThis", "global":
		return member(global, name)
	default:
		return member(context, name)
	}
}

// member is the thing that a member of a thing is.
func member(of thing, name string) thing {
	switch {
	case of == context && name == "loader":
		return loader
	case of == process && name == "env":
		return environment
	case of == global && name == "process":
		return process
	case of == global && (name == "globalThis" || name == "global"):
		return global
	}
	return something
}

// get is the callee of ctx.get('service') and the service; nil for all other
// calls.
func (r *reader) get(call *js.CallExpr) (*js.DotExpr, string) {
	dot, ok := call.X.(*js.DotExpr)
	if !ok || len(call.Args.List) == 0 || r.of(dot.X) != context {
		return nil, ""
	}
	if name, ok := dotName(dot); !ok || name != "get" {
		return nil, ""
	}
	service, ok := literal(call.Args.List[0].Value)
	if !ok {
		return nil, ""
	}
	return dot, service
}

// dotName is the name behind a dot, which is none of a private member.
func dotName(n *js.DotExpr) (string, bool) {
	if l, ok := n.Y.(js.LiteralExpr); ok {
		return identifier(l.Data), true
	}
	return "", false
}

// bind notes what a declaration takes out of a thing: const {A, B: b} = thing.
func (r *reader) bind(to js.IBinding, of thing) {
	switch to := to.(type) {
	case *js.Var:
		r.hold(to, of)
	case *js.BindingObject:
		for _, item := range to.List {
			if name, ok := propertyName(item.Key); ok {
				r.record(of, name)
				r.bind(item.Value.Binding, member(of, name))
			}
		}
	}
}

// assign notes what an assignment takes out of a thing.
func (r *reader) assign(to js.IExpr, of thing) {
	switch to := to.(type) {
	case *js.Var:
		r.hold(to, of)
	case *js.GroupExpr:
		r.assign(to.X, of)
	case *js.ObjectExpr:
		for _, p := range to.List {
			if name, ok := propertyName(p.Name); ok {
				r.record(of, name)
				r.assign(p.Value, member(of, name))
			}
		}
	}
}

func (r *reader) hold(v *js.Var, of thing) {
	if v = root(v); of != something && v.Decl != js.NoDecl {
		r.bound[v] = of
	}
}

// globals is the names of ECMAScript and of Node.js that an expression may use
// without asking its context.
var globals = strings.Fields(`
	undefined NaN Infinity globalThis global arguments eval isFinite isNaN parseFloat parseInt
	decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape
	Object Function Boolean Symbol Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError
	Number BigInt Math Date String RegExp Array Map Set WeakMap WeakSet WeakRef FinalizationRegistry Iterator
	ArrayBuffer SharedArrayBuffer DataView Atomics JSON Promise Proxy Reflect Intl WebAssembly
	Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array
	Float16Array Float32Array Float64Array BigInt64Array BigUint64Array
	process Buffer console URL URLSearchParams URLPattern TextEncoder TextDecoder AbortController AbortSignal
	setTimeout clearTimeout setInterval clearInterval setImmediate clearImmediate queueMicrotask structuredClone
	fetch Headers Request Response FormData Blob File WebSocket EventSource crypto Crypto CryptoKey SubtleCrypto
	performance Event EventTarget CustomEvent MessageChannel MessagePort MessageEvent BroadcastChannel
	ReadableStream WritableStream TransformStream CompressionStream DecompressionStream
	atob btoa navigator DOMException`)
