package main

// fixture is a project to install.
type fixture struct {
	name         string
	dependencies map[string]string
	// peers says that missing peers are installed too. In bundle they are not: they are packages of the harness, which its installation has.
	peers bool
}

var fixtures = []fixture{
	{name: "bundle", dependencies: map[string]string{"@deepseek-ai/dsh-headless": "0.1.0-rc.8"}},
	{name: "medium", peers: true, dependencies: map[string]string{
		"fastify": "^5.0.0", "express": "^5.0.0", "webpack": "^5.0.0", "mocha": "^11.0.0", "axios": "^1.0.0", "winston": "^3.0.0", "nodemon": "^3.0.0",
	}},
	{name: "dsh", peers: true, dependencies: map[string]string{"@deepseek-ai/dsh": "0.1.0-rc.8"}},
	{name: "big", peers: true, dependencies: map[string]string{
		"react-scripts": "5.0.1", "react": "^18.0.0", "react-dom": "^18.0.0", "express": "^5.0.0", "fastify": "^5.0.0",
	}},
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
