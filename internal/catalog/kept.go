package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"dsh/internal/staging"
)

// Kept is the copy of a catalogue that is kept on this machine: one line that says
// where it is from, and the text as it came.
type Kept struct {
	From     string    `json:"from"`
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"modified,omitempty"` // the server's Last-Modified
	Fetched  time.Time `json:"fetched"`            // when this text came
	Checked  time.Time `json:"checked"`            // when it was known to be the newest
	Text     []byte    `json:"-"`
}

// ReadKept reads the copy in a file, nil where there is none of that place.
func ReadKept(file, from string) (*Kept, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the copy of a catalogue: %w", err)
	}
	head, text, ok := bytes.Cut(data, []byte("\n"))
	k := &Kept{Text: text}
	if !ok || json.Unmarshal(head, k) != nil || k.From != from {
		return nil, nil // of another dsh, or of a place that the name was given to before
	}
	return k, nil
}

// Write keeps it in a file.
func (k *Kept) Write(file string) error {
	head, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := staging.MkdirAll(filepath.Dir(file)); err != nil {
		return err
	}
	return staging.WriteFile(file, append(append(head, '\n'), k.Text...), 0o600)
}
