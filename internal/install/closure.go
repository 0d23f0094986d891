package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"dsh/internal/install/store"
	"dsh/internal/staging"
)

// closure is what the last job on a profile remembered in [Job.Closure]: the
// listings of all contents that its tree is made of, in one file, and what the
// lockfile was the answer to. All of it can be made anew.
//
//	dsh-closure <hash of the question and its answer> <boot>
//	<the store's listings>
type closure struct {
	question, boot string
	entries        map[store.Integrity]store.Entry
}

const closureHeader = "dsh-closure"

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
	words := strings.Split(string(head), " ")
	if len(words) != 3 || words[0] != closureHeader {
		return closure{}
	}
	entries, err := packages.ParseClosure(listings)
	if err != nil {
		return closure{}
	}
	return closure{words[1], words[2], entries}
}

// answers reports whether the present lockfile is what resolving the wishes
// would give. What is in linked folders, and in the installation, may be another
// thing by now.
func (c closure) answers(j *Job, wishes []Wish) bool {
	if j.locked == nil || j.settings.Hosts == OmitHosts || j.settings.AutoPeers {
		return false
	}
	for _, w := range wishes {
		if n, ok := j.locked.at("node_modules/" + w.Name); ok && n.Origin.Kind == Link {
			return false
		}
	}
	return c.question == fingerprint(j, j.lockText, wishes)
}

// fingerprint is the hash of all that resolving depends on as long as nothing new
// is asked for, and of the lockfile that was the answer.
func fingerprint(j *Job, lockText []byte, wishes []Wish) string {
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode([]any{resolverVersion, wishes, j.settings.Overrides}) // a hash takes all
	_, _ = hash.Write(lockText)
	return hex.EncodeToString(hash.Sum(nil))
}

// save remembers what a tree is made of, where that is not remembered already.
// That it cannot be is no error.
func (c closure) save(j *Job, lockText []byte, wishes []Wish, entries map[store.Integrity]store.Entry) {
	if j.Closure == "" {
		return
	}
	question, boot := fingerprint(j, lockText, wishes), staging.BootID()
	if question == c.question && boot == c.boot && len(entries) == len(c.entries) && contains(c.entries, entries) {
		return
	}
	text := []byte(closureHeader + " " + question + " " + boot + "\n")
	// What is only kept because nothing of it is laid out is not vouched for.
	sound := slices.DeleteFunc(slices.Collect(maps.Values(entries)), func(e store.Entry) bool { return !e.Sound() })
	text = append(text, store.FormatClosure(sound)...)
	_ = staging.WriteDerived(j.Closure, text, 0o644)
}

func contains(all, some map[store.Integrity]store.Entry) bool {
	for id := range some {
		if _, ok := all[id]; !ok {
			return false
		}
	}
	return true
}
