package credentials

import (
	"fmt"
	"log/slog"
)

// Secret is a text that is not shown. However it is printed, logged or
// marshalled, it is only said that there is one.
type Secret struct{ text string }

// NewSecret is text as a secret.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal is the text. Whoever asks for it sees to it that it is not shown.
func (s Secret) Reveal() string { return s.text }

// masked is what is shown of a secret, whatever it is.
const masked = "(secret)"

// Format prints the mask under every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, masked) }

// String is the mask.
func (s Secret) String() string { return masked }

// MarshalText is the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// LogValue is the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }
