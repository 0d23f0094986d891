package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// fixture is a project to install.
type fixture struct {
	Name         string
	Dependencies map[string]string
	// Peers says that missing peers are installed too. In bundle they are not: they are packages of the harness, which its installation has.
	Peers bool
}

//go:embed fixtures.json
var fixtureList []byte

func readFixtures() (list []fixture, err error) {
	if err := json.Unmarshal(fixtureList, &list); err != nil {
		return nil, fmt.Errorf("reading fixtures.json: %w", err)
	}
	return list, nil
}

// scenario says what is there before an install.
type scenario string

const (
	cold   scenario = "cold"   // nothing
	warm   scenario = "warm"   // caches younger than five minutes; no lockfile, no node_modules
	frozen scenario = "frozen" // caches and lockfile; no node_modules, and the lockfile may not change
	noop   scenario = "noop"   // all
)

var scenarios = []scenario{cold, warm, frozen, noop}
