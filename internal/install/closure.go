package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"

	"dsh/internal/install/store"
	"dsh/internal/staging"
)

// closure is what the last job on a profile remembered in [Job.Closure]: the
// listings of all contents that its tree is made of, in one file, and what the
// lockfile was the answer to. All of it can be made anew.
//
//	dsh-closure <hash of the question and its answer>
//	<the store's listings>
type closure struct {
	text     []byte
	question string
	entries  map[store.Integrity]store.Entry
}

const closureHeader = "dsh-closure "

// resolverVersion goes up with every change of what the resolver answers, so
// that lockfiles of before are looked at again.
const resolverVersion = "1"

// readClosure reads what the last job remembered. What does not read is as if it
// was not there.
func readClosure(file string, packages *store.Store) closure {
	if file == "" {
		return closure{}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return closure{}
	}
	head, listings, _ := bytes.Cut(text, []byte("\n"))
	question, ok := bytes.CutPrefix(head, []byte(closureHeader))
	if !ok {
		return closure{}
	}
	entries, err := packages.ParseClosure(listings)
	if err != nil {
		return closure{}
	}
	return closure{text, string(question), entries}
}

// answers reports whether the present lockfile is what resolving the wishes
// would give.
func (c closure) answers(j *Job, wishes []Wish) bool {
	return j.locked != nil && c.question == fingerprint(j, j.lockText, wishes)
}

// fingerprint is the hash of all that resolving depends on as long as nothing new
// is asked for, and of the lockfile that was the answer.
func fingerprint(j *Job, lockText []byte, wishes []Wish) string {
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode([]any{resolverVersion, wishes, j.settings})
	_, _ = io.Copy(hash, bytes.NewReader(lockText))
	return hex.EncodeToString(hash.Sum(nil))
}

// save remembers what a tree is made of, where that is not remembered already.
// That it cannot be is no error.
func (c closure) save(j *Job, lockText []byte, wishes []Wish, entries map[store.Integrity]store.Entry) {
	if j.Closure == "" {
		return
	}
	list := make([]store.Entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	text := []byte(closureHeader + fingerprint(j, lockText, wishes) + "\n")
	text = append(text, store.FormatClosure(list)...)
	if !bytes.Equal(text, c.text) {
		_ = staging.WriteDerived(j.Closure, text, 0o644)
	}
}
