// Package agent is the rows that an agent is made of: the model, sessions and
// their logs, compaction. This host has no agent. The rows check what they are
// told, find the keys, and publish what an agent needs, so that other plugins
// can use it and mistakes are found here and now.
//
// It asks no model and writes no session.
package agent

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/credentials"
	"dsh/internal/boot/slot"
	"dsh/internal/fault"
)

// The services.
const (
	ModelService       = "llm"                // *Model
	SessionService     = "session"            // Sessions
	PersistenceService = "sessionPersistence" // Persistence
	CompactionService  = "compaction"         // *Compaction
)

// The names of the plugins.
const (
	ModelName       = "@deepseek-ai/dsh-llm"
	SessionName     = "@deepseek-ai/dsh-session"
	PersistenceName = "@deepseek-ai/dsh-session-persistence-jsonl"
	CompactionName  = "@deepseek-ai/dsh-compaction-basic"
)

// noAgent is what each of the rows says.
const noAgent = "this host runs no agent; the row gives its settings to others as service %s"

// Endpoint is where a model is asked. Both llm and compaction-basic have one.
type Endpoint struct {
	Model       string            `json:"model"`
	BaseURL     string            `json:"base_url"`
	APIKeyEnv   string            `json:"api_key_env"`
	APIKeyFile  string            `json:"api_key_file"` // absolute; wins over APIKeyEnv
	Headers     map[string]string `json:"headers"`
	Temperature *float64          `json:"temperature"`
	MaxTokens   int               `json:"max_tokens"` // 0 is the service's own limit
	TimeoutMs   int               `json:"timeout_ms"` // 0 is 120000
}

// ModelConfig is the configuration of llm.
type ModelConfig struct {
	Provider string `json:"provider"`
	Endpoint
	Retry Retry `json:"retry"`
}

// Retry is what happens when the model's service is busy. Zero values are the
// defaults of the schema.
type Retry struct {
	MaxAttempts    int  `json:"max_attempts"`
	InitialDelayMs *int `json:"initial_delay_ms"`
	MaxDelayMs     *int `json:"max_delay_ms"`
}

// Model is where agents ask.
type Model struct {
	Provider string
	Endpoint Endpoint
	Retry    Retry
	keys     keys
}

// Key is the key of the model's service as it is now; ok is false where none is
// set.
func (m *Model) Key() (key credentials.Credential, ok bool, err error) { return m.keys.of(m.Endpoint) }

// Timeout is how long nothing may arrive.
func (m *Model) Timeout() time.Duration { return timeout(m.Endpoint) }

// Expression is what expressions see.
func (m *Model) Expression() any {
	return map[string]any{"provider": m.Provider, "model": m.Endpoint.Model, "baseUrl": m.Endpoint.BaseURL}
}

func timeout(e Endpoint) time.Duration {
	if e.TimeoutMs == 0 {
		return 2 * time.Minute
	}
	return time.Duration(e.TimeoutMs) * time.Millisecond
}

// needs are what rows with an endpoint find keys by.
func needs() []host.Need {
	return []host.Need{{Service: credentials.Service, Optional: true}, {Service: slot.Environment, Optional: true}}
}

// keys finds keys: in their file, by the credentials, or in the environment
// where no row has credentials.
type keys struct {
	credentials *credentials.Credentials
	environment slot.LaunchEnvironment
}

func keysOf(r *host.Row) keys {
	var k keys
	k.credentials, _ = host.Service[*credentials.Credentials](r, credentials.Service)
	k.environment, _ = host.Service[slot.LaunchEnvironment](r, slot.Environment)
	return k
}

func (k keys) of(e Endpoint) (key credentials.Credential, ok bool, err error) {
	switch {
	case e.APIKeyFile != "":
		key, err = credentials.ReadKeyFile(e.APIKeyFile)
		return key, err == nil, err
	case e.APIKeyEnv == "":
		return credentials.Credential{}, false, nil
	case k.credentials != nil:
		return k.credentials.Lookup(e.APIKeyEnv)
	}
	value := strings.TrimSpace(k.environment.Getenv(e.APIKeyEnv))
	return credentials.Credential{Key: credentials.NewSecret(value), From: "the environment"}, value != "", nil
}

// tell says where the key of an endpoint comes from, never what it is.
func (k keys) tell(r *host.Row, e Endpoint) error {
	key, ok, err := k.of(e)
	switch {
	case err != nil:
		return fmt.Errorf("find the API key: %w", err)
	case !ok && e.APIKeyEnv != "":
		r.Logf("there is no API key: %s is neither in the environment nor a credential", e.APIKeyEnv)
	case !ok:
		r.Logf("there is no API key: neither api_key_env nor api_key_file is set")
	default:
		r.Logf("the API key is from %s", key.From)
	}
	if key.Exposed {
		r.Logf("other users may read the API key; run: %s", fault.ShellWords("chmod", "600", key.From))
	}
	return nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check is what is wrong with an endpoint. Its errors show no value but names.
func (e Endpoint) check() error {
	if e.Model == "" {
		return fault.Errorf(fault.Composition, "model is missing")
	}
	if e.BaseURL != "" {
		address, err := url.Parse(e.BaseURL)
		switch {
		case err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https"):
			return fault.Errorf(fault.Composition, "base_url is no address that begins with http:// or https://")
		case address.User != nil:
			return fault.Errorf(fault.Policy, "base_url has a user or password in it; give the key as api_key_env or api_key_file")
		}
	}
	if e.APIKeyEnv != "" && !variable.MatchString(e.APIKeyEnv) {
		return fault.Errorf(fault.Composition, "api_key_env is no name of a variable; is it the key itself?")
	}
	switch {
	case e.Temperature != nil && (*e.Temperature < 0 || *e.Temperature > 2):
		return fault.Errorf(fault.Composition, "temperature is from 0 to 2")
	case e.MaxTokens < 0:
		return fault.Errorf(fault.Composition, "max_tokens is at least 1")
	case e.TimeoutMs < 0:
		return fault.Errorf(fault.Composition, "timeout_ms is at least 1")
	}
	return nil
}

// ModelPlugin publishes the model.
var ModelPlugin = host.Plugin{
	Inject:   needs(),
	Provides: []string{ModelService},
	Start: func(_ context.Context, r *host.Row) error {
		var config ModelConfig
		if err := r.Decode(&config); err != nil {
			return err
		}
		if config.Provider == "" {
			return fault.Errorf(fault.Composition, "provider is missing")
		}
		if err := config.check(); err != nil {
			return err
		}
		m := &Model{config.Provider, config.Endpoint, config.Retry, keysOf(r)}
		if err := m.keys.tell(r, m.Endpoint); err != nil {
			return err
		}
		r.Logf(noAgent, ModelService)
		r.Provide(ModelService, m)
		return nil
	},
}

// Sessions stands for conversations. There are none here.
type Sessions struct{}

// SessionPlugin publishes that there are no sessions.
var SessionPlugin = host.Plugin{
	Provides: []string{SessionService},
	Start: func(_ context.Context, r *host.Row) error {
		if err := r.Decode(new(struct{})); err != nil {
			return err
		}
		r.Logf(noAgent, SessionService)
		r.Provide(SessionService, Sessions{})
		return nil
	},
}

// PersistenceConfig is the configuration of session-persistence-jsonl. Zero
// values are the defaults of the schema.
type PersistenceConfig struct {
	Root                     string `json:"root"` // absolute
	Compression              string `json:"compression"`
	PackChunks               *bool  `json:"packChunks"`
	PreparedSessionCacheSize int    `json:"preparedSessionCacheSize"`
	WriteBatchMaxDelayMs     int    `json:"writeBatchMaxDelayMs"`
}

// Persistence is where session logs are.
type Persistence struct {
	Root       string
	Compressed bool // in Zstandard frames, else plain lines
}

// Expression is what expressions see.
func (p Persistence) Expression() any { return map[string]any{"root": p.Root} }

// PersistencePlugin publishes where session logs are. It makes no folder.
var PersistencePlugin = host.Plugin{
	Provides: []string{PersistenceService},
	Start: func(_ context.Context, r *host.Row) error {
		var config PersistenceConfig
		if err := r.Decode(&config); err != nil {
			return err
		}
		switch {
		case config.Root == "":
			return fault.Errorf(fault.Composition, "root is missing")
		case config.Compression != "" && config.Compression != "none" && config.Compression != "zstd":
			return fault.Errorf(fault.Composition, "compression %q is neither none nor zstd", config.Compression)
		case config.PreparedSessionCacheSize < 0 || config.WriteBatchMaxDelayMs < 0:
			return fault.Errorf(fault.Composition, "preparedSessionCacheSize and writeBatchMaxDelayMs are at least 1")
		}
		r.Logf(noAgent, PersistenceService)
		r.Provide(PersistenceService, Persistence{config.Root, config.Compression != "none"})
		return nil
	},
}
