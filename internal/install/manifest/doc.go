// Package manifest is the one reader of package.json documents, as packages
// hold them and as registries repeat them: what it returns is the same for the
// same document wherever that stands.
//
// It is not a validator: what publishers get wrong is read as npm takes it, or
// as absent, so that a package installs when npm would install it.
package manifest
