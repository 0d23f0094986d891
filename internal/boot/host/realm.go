package host

import (
	"fmt"
	"maps"

	"dsh/internal/compose"
)

// key is a service in one realm: rows of other realms do not see it. The realm
// "" is that of the tree; slots are in it.
type key struct{ service, realm string }

// realms are the realms of services that are isolated from the tree's.
type realms map[string]string

func (r realms) key(service string) key { return key{service, r[service]} }

// isolate is the realms outside of a row with its own `isolate` laid over
// them: true is a realm of the row and of what is in it, a text is the realm
// that all rows with that text share.
func isolate(outer realms, entry *compose.Map, path string) (realms, error) {
	v, _ := entry.Get("isolate")
	if v == nil {
		return outer, nil
	}
	m, ok := v.(*compose.Map)
	if !ok {
		return outer, fmt.Errorf("isolate: expected a mapping of services to true or the name of a realm, not %s", compose.Show(v))
	}
	inner := maps.Clone(outer)
	if inner == nil {
		inner = realms{}
	}
	for service, realm := range m.All() {
		switch realm := realm.(type) {
		case nil:
		case bool:
			if realm {
				inner[service] = "row " + path
			}
		case string:
			if realm != "" {
				inner[service] = "shared " + realm
			}
		default:
			return outer, fmt.Errorf("isolate.%s: expected true or the name of a realm, not %s", service, compose.Show(realm))
		}
	}
	return inner, nil
}
