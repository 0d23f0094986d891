package jsexpr

import (
	"bytes"
	"slices"

	"github.com/tdewolff/parse/v2/js"
)

// breach is a rule of the language that a program breaks.
type breach struct {
	problem string
	word    string // that the text has at the place, "" where none is known
}

// rules checks what the parser lets pass, because it also reads modules and
// because it leaves it to whoever runs the program. A visitor holds for the
// nodes below it; found and the maps are shared.
type rules struct {
	async, method   bool // inside an async function, inside a method
	loop, breakable bool
	labels          []string
	found           **breach
	patterns        map[*js.ObjectExpr]bool // that are assigned to
	static          map[*js.BlockStmt]bool  // of classes
}

// broken is a rule that the program breaks, or nil.
func broken(ast *js.AST) *breach {
	var found *breach
	js.Walk(rules{found: &found, patterns: map[*js.ObjectExpr]bool{}, static: map[*js.BlockStmt]bool{}}, ast)
	return found
}

func (r rules) fail(word, problem string) {
	if *r.found == nil {
		*r.found = &breach{problem, word}
	}
}

// Exit is called when all below a node has been seen.
func (r rules) Exit(js.INode) {}

// Enter is called for each node of the program.
func (r rules) Enter(n js.INode) js.IVisitor {
	if *r.found != nil {
		return nil
	}
	switch n := n.(type) {
	case *js.ImportStmt, *js.ImportMetaExpr:
		r.fail("import", "import does not work here")
	case *js.ExportStmt:
		r.fail("export", "export does not work here")
	case *js.Var:
		if bytes.HasPrefix(n.Data, []byte("#")) && root(n).Decl == js.NoDecl {
			r.fail("#", "# works in classes only")
		}
	case *js.LiteralExpr:
		r.literal(n)
	case *js.TemplateExpr:
		r.template(n)
	case *js.UnaryExpr:
		r.unary(n)
	case *js.BinaryExpr:
		r.binary(n)
	case *js.ObjectExpr:
		r.object(n)
	case *js.BranchStmt:
		r.branch(n)
	default:
		return r.inside(n)
	}
	return r
}

// inside is the visitor for what a node encloses.
func (r rules) inside(n js.INode) js.IVisitor {
	switch n := n.(type) {
	case *js.FuncDecl:
		return r.function(n.Async, false)
	case *js.ArrowFunc:
		return r.function(n.Async, r.method)
	case *js.MethodDecl:
		if takes := len(n.Params.List); n.Params.Rest != nil && (n.Get || n.Set) || n.Get && takes != 0 || n.Set && takes != 1 {
			r.fail("", "a getter takes nothing, and a setter one value")
		}
		js.Walk(r, n.Name.Computed) // which the walk leaves out
		return r.function(n.Async, true)
	case *js.Field:
		js.Walk(r, n.Name.Computed)
		return r.function(false, true)
	case *js.ClassDecl:
		for _, item := range n.List {
			if item.StaticBlock != nil {
				r.static[item.StaticBlock] = true
			}
		}
	case *js.BlockStmt:
		if r.static[n] {
			return r.function(false, true)
		}
	case *js.ForOfStmt:
		if n.Await && !r.async {
			r.fail("await", "await works in async functions only")
		}
		r.pattern(n.Init)
		r.loop, r.breakable = true, true
	case *js.ForInStmt:
		r.pattern(n.Init)
		r.loop, r.breakable = true, true
	case *js.ForStmt, *js.WhileStmt, *js.DoWhileStmt:
		r.loop, r.breakable = true, true
	case *js.SwitchStmt:
		r.breakable = true
	case *js.LabelledStmt:
		r.labels = append(slices.Clip(r.labels), string(n.Label))
	}
	return r
}

func (r rules) function(async, method bool) rules {
	return rules{async: async, method: method, found: r.found, patterns: r.patterns, static: r.static}
}

func (r rules) literal(n *js.LiteralExpr) {
	switch n.TokenType {
	case js.SuperToken:
		if !r.method {
			r.fail("super", "super works in methods only")
		}
	case js.RegExpToken:
		if problem := badRegExp(n.Data); problem != "" {
			r.fail(string(n.Data), problem)
		}
	case js.StringToken:
		if _, ok := unescape(inner(n.Data), false); !ok {
			r.fail(string(n.Data), `a text holds a \ with something behind it that is no escape; write \\ for a backslash`)
		}
	}
}

func (r rules) template(n *js.TemplateExpr) {
	if n.Tag != nil {
		if n.Optional || optional(n.Tag) {
			r.fail("?.", "?. and a template do not go together")
		}
		return
	}
	parts := [][]byte{n.Tail}
	for _, p := range n.List {
		parts = append(parts, p.Value)
	}
	for _, part := range parts {
		if _, ok := unescape(inner(part), true); !ok {
			r.fail(string(part), `a template holds a \ with something behind it that is no escape; write \\ for a backslash`)
		}
	}
}

func (r rules) unary(n *js.UnaryExpr) {
	switch n.Op {
	case js.AwaitToken:
		if !r.async {
			r.fail("await", "await works in async functions only")
		}
	case js.PreIncrToken, js.PreDecrToken, js.PostIncrToken, js.PostDecrToken:
		if !assignable(n.X) {
			r.fail("", "++ and -- need a variable")
		}
	}
}

func (r rules) binary(n *js.BinaryExpr) {
	switch n.Op {
	case js.EqToken:
		switch n.X.(type) {
		case *js.ObjectExpr, *js.ArrayExpr:
			r.pattern(n.X)
			return
		}
	case js.MulEqToken, js.DivEqToken, js.ModEqToken, js.ExpEqToken, js.AddEqToken, js.SubEqToken, js.LtLtEqToken,
		js.GtGtEqToken, js.GtGtGtEqToken, js.BitAndEqToken, js.BitXorEqToken, js.BitOrEqToken, js.AndEqToken,
		js.OrEqToken, js.NullishEqToken:
	default:
		return
	}
	if !assignable(n.X) {
		r.fail("", notAssignable)
	}
}

// pattern marks what is assigned to by its parts.
func (r rules) pattern(e js.IExpr) {
	switch e := e.(type) {
	case *js.ObjectExpr:
		r.patterns[e] = true
		for _, p := range e.List {
			r.target(p.Value)
		}
	case *js.ArrayExpr:
		for _, item := range e.List {
			r.target(item.Value)
		}
	}
}

// target looks at one part of what is assigned to by its parts.
func (r rules) target(e js.IExpr) {
	switch e := e.(type) {
	case nil: // [a, , b]
	case *js.ObjectExpr, *js.ArrayExpr:
		r.pattern(e)
	case *js.BinaryExpr:
		if e.Op != js.EqToken {
			r.fail("", notAssignable)
		}
	default:
		if _, call := e.(*js.CallExpr); call || !assignable(e) {
			r.fail("", notAssignable)
		}
	}
}

func (r rules) object(n *js.ObjectExpr) {
	for _, p := range n.List {
		if p.Init != nil && !r.patterns[n] {
			r.fail("", "an object has a = between a key and its value; write :")
		}
	}
}

func (r rules) branch(n *js.BranchStmt) {
	switch {
	case n.Label != nil && !slices.Contains(r.labels, string(n.Label)):
		r.fail(n.Type.String(), n.Type.String()+" names a label that is not there")
	case n.Type == js.ContinueToken && !r.loop, n.Label == nil && !r.breakable:
		r.fail(n.Type.String(), n.Type.String()+" works in loops only")
	}
}

const notAssignable = "what stands before = cannot be assigned to; write === to compare"

// assignable says whether an expression can stand before = or beside ++.
func assignable(e js.IExpr) bool {
	switch e := e.(type) {
	case *js.Var, *js.DotExpr, *js.IndexExpr:
		return !optional(e)
	case *js.CallExpr: // an error only when it runs
		return !optional(e)
	case *js.GroupExpr:
		return assignable(e.X)
	}
	return false
}

// optional says whether ?. stands in a chain of members and calls.
func optional(e js.IExpr) bool {
	switch e := e.(type) {
	case *js.DotExpr:
		return e.Optional || optional(e.X)
	case *js.IndexExpr:
		return e.Optional || optional(e.X)
	case *js.CallExpr:
		return e.Optional || optional(e.X)
	case *js.TemplateExpr:
		return e.Optional || optional(e.Tag)
	}
	return false
}
