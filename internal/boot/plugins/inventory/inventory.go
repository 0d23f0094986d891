// Package inventory tells which plugins run, to other rows as a service and to
// scripts at an address of the web server.
//
// It changes nothing that runs.
package inventory

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/boot/slot"
)

// Service is the name under which the Inventory is provided.
const Service = "pluginInventory"

// Name is the plugin's.
const Name = "@deepseek-ai/dsh-host-plugin-inventory"

// Path is where the web server has it.
const Path = "/api/plugin-inventory"

// Inventory tells which plugins run.
type Inventory struct{ rows slot.Rows }

// Entry is one row.
type Entry struct {
	Path     string     `json:"path"` // of the row in the tree
	ID       string     `json:"id,omitempty"`
	Plugin   string     `json:"plugin"`
	State    string     `json:"state"` // off, waiting, starting, active, stopping or failed
	Since    *time.Time `json:"since,omitempty"`
	Provides []string   `json:"provides"`
	Missing  []string   `json:"missing,omitempty"` // the services that a waiting row lacks
	Why      string     `json:"why,omitempty"`     // the same in words, and why they do not come
	Error    string     `json:"error,omitempty"`
}

// List is the rows in the order of the tree.
func (i Inventory) List() []Entry {
	entries := []Entry{}
	for _, row := range i.rows.Rows() {
		e := Entry{Path: row.Path, ID: row.ID, Plugin: row.Name, State: row.State.String(), Provides: row.Provides, Missing: row.Missing, Why: row.Why}
		if e.Provides == nil {
			e.Provides = []string{}
		}
		if !row.Since.IsZero() {
			since := row.Since.UTC()
			e.Since = &since
		}
		if row.Err != nil {
			e.Error = row.Err.Error()
		}
		entries = append(entries, e)
	}
	return entries
}

// Plugin provides the inventory, and shows it at Path while there is a web
// server.
var Plugin = host.Plugin{
	Inject:   []host.Need{{Service: slot.Host}, {Service: webserver.Service, Optional: true}},
	Provides: []string{Service},
	Start: func(_ context.Context, r *host.Row) error {
		if err := r.Decode(new(struct{})); err != nil {
			return err
		}
		rows, _ := host.Service[slot.Rows](r, slot.Host)
		i := Inventory{rows}
		if server, ok := host.Service[webserver.Server](r, webserver.Service); ok {
			remove, err := server.Handle(Path, i)
			if err != nil {
				return err
			}
			r.OnStop(func(context.Context) error { remove(); return nil })
		}
		r.Provide(Service, i)
		return nil
	},
}

// ServeHTTP answers with the list.
func (i Inventory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this address can only be read", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"plugins": i.List()})
}
