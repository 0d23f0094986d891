package install

import "strconv"

// quote shows a text that a person wrote.
func quote(s string) string { return strconv.Quote(s) }
