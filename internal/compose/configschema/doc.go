// Package configschema is the JSON Schemas of plugin configs, and what is wrong
// with a config by its schema, said for people.
//
// It is not a finder of schemas: it takes their text, and it loads nothing, also
// not what a schema refers to.
package configschema
