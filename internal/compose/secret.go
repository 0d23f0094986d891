package compose

// mask stands for a secret.
const mask = "***"

// Redact is a copy of v in which what is under keys that are named like
// secrets is replaced by ***, and so is what looks like a secret by itself: the
// user in a URL, the value of a --token option, what follows Bearer.
func Redact(v Value) Value { return redact(v, false) }

func redact(v Value, secret bool) Value {
	switch v := v.(type) {
	case string:
		if secret && v != "" {
			return mask
		}
		return v
	case *Map:
		pairs := make([]pair, v.Len())
		for i, p := range v.entries() {
			pairs[i] = pair{p.key, redact(p.value, secret || IsSecretKey(p.key))}
		}
		m := newMap(pairs)
		m.line, m.column = v.line, v.column
		return m
	case *List:
		l := &List{Items: make([]Value, len(v.Items))}
		for i, item := range v.Items {
			l.Items[i] = redact(item, secret)
		}
		return l
	default:
		return v
	}
}

// IsSecretKey says whether a key is named like a secret.
func IsSecretKey(key string) bool {
	return key == "token" || key == "password"
}
