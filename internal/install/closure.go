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
	"sync"

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
	question string
	vouched  bool                                   // in this boot; a power loss may have taken something since
	entries  func() map[store.Integrity]store.Entry // nil where nothing is
}

func (c closure) known() map[store.Integrity]store.Entry {
	if c.entries == nil {
		return nil
	}
	return c.entries()
}

const closureHeader = "dsh-closure"

// resolverVersion goes up with every change of what the resolver answers, so
// that lockfiles of before are looked at again.
const resolverVersion = "1"

// readClosure reads what the last job remembered; the listings when they are
// asked for, since who changes nothing needs none. What does not read is as if it
// was not there.
func readClosure(file string, packages *store.Store) closure {
	if file == "" {
		return closure{}
	}
	head := readHead(file)
	words := strings.Split(head, " ")
	if len(words) != 3 || words[0] != closureHeader {
		return closure{}
	}
	boot := staging.BootID()
	return closure{words[1], boot != "" && words[2] == boot, sync.OnceValue(func() map[store.Integrity]store.Entry {
		text, err := os.ReadFile(file)
		listings, same := bytes.CutPrefix(text, []byte(head+"\n"))
		if err != nil || !same {
			return nil
		}
		entries, err := packages.ParseClosure(listings)
		if err != nil {
			return nil
		}
		return entries
	})}
}

// readHead is the first line of a closure, "" where it does not read.
func readHead(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, 256)
	n, _ := f.Read(text)
	head, _, ended := bytes.Cut(text[:n], []byte("\n"))
	if !ended {
		return ""
	}
	return string(head)
}

// answers reports whether the present lockfile is what resolving the wishes
// would give. What is in linked folders, and in the installation, may be another
// thing by now.
func (c closure) answers(j *Job, wishes []Wish) bool {
	depends := j.Provides != nil && (j.settings.Hosts == OmitHosts || j.settings.AutoPeers) // on the installation
	if j.locked == nil || depends || j.locked.MadeFor(j.settings, j.Provides) != nil {
		return false
	}
	for _, n := range j.locked.Nodes {
		if _, inside := j.locked.Nodes[n.Origin.Place]; n.Origin.Kind == Link && !inside {
			return false
		}
	}
	return c.question == fingerprint(j, j.lockText, wishes)
}

// fingerprint is the hash of all that resolving depends on as long as nothing new
// is asked for, and of the lockfile that was the answer.
func fingerprint(j *Job, lockText []byte, wishes []Wish) string {
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode([]any{resolverVersion, wishes, j.settings.Overrides, j.settings.AutoPeers, j.settings.Hosts}) // a hash takes all
	_, _ = hash.Write(lockText)
	return hex.EncodeToString(hash.Sum(nil))
}

// save remembers what a tree is made of, where that is not remembered already.
// That it cannot be is no error. Contents that the job did not look at are those
// that it found remembered.
func (c closure) save(j *Job, lockText []byte, wishes []Wish, t *tree) {
	question := fingerprint(j, lockText, wishes)
	if j.Closure == "" || c.vouched && c.question == question {
		return
	}
	var known map[store.Integrity]store.Entry
	if c.vouched {
		known = c.known()
	}
	list := map[store.Integrity]store.Entry{}
	for _, n := range t.lock.Nodes {
		if entry, ok := t.entries[n.Integrity]; ok {
			list[n.Integrity] = entry
		} else if entry, ok := known[n.Integrity]; ok {
			list[n.Integrity] = entry
		}
	}
	text := []byte(closureHeader + " " + question + " " + staging.BootID() + "\n")
	text = append(text, store.FormatClosure(slices.Collect(maps.Values(list)))...)
	_ = staging.WriteDerived(j.Closure, text, 0o644)
}
