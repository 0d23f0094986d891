// Package jsexpr is what can be told from the text of a `!!js` expression
// without running it: whether it parses, which environment variables and
// services it reads, and how it looks without the texts in it.
//
// It is not an interpreter: nothing here ever evaluates an expression.
package jsexpr
