package profileapi

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dsh/internal/action"
)

// words are the texts of a list in an answer.
func words(v any) []string {
	var all []string
	list, _ := v.([]any)
	for _, item := range list {
		text, _ := item.(string)
		all = append(all, text)
	}
	return all
}

func (w *world) revision() string {
	w.Helper()
	return w.get("patch")["revision"].(string)
}

func TestCheckPatch(t *testing.T) {
	w := newWorld(t, true)
	for name, c := range map[string]struct {
		text   string
		blocks bool
		codes  string // of new findings
		wants  map[string]any
	}{
		"the same": {patchText, false, "", map[string]any{"changes.added": []any{}, "changes.removed": []any{}, "changes.changed": []any{}}},
		"nothing": {"[]\n", false, "", map[string]any{
			"changes.removed.0.row": "keeper", "changes.changed.0.row": "hello", "changes.changed.0.keys.0.key": "config.greeting",
			"changes.changed.0.keys.0.old": "hi", "changes.changed.0.keys.0.new": "good morning",
		}},
		"a new row":   {patchText + "- insert:\n    - {id: more, name: x}\n", false, "", map[string]any{"changes.added.0.row": "more", "changes.added.0.plugin": "x"}},
		"no YAML":     {"- id: [", true, "syntax", map[string]any{"changes": nil}},
		"no list":     {"a: 1\n", true, "not-patches", map[string]any{"changes": nil}},
		"no such row": {patchText + "- {id: nope, config: {}}\n", true, "target-missing", nil},
		"id twice":    {patchText + "- insert:\n    - {id: hello, name: x}\n", true, "duplicate-id", nil},
	} {
		answer := w.post("patch/check", map[string]any{"text": c.text}, http.StatusOK)
		if answer["blocks"] != c.blocks {
			t.Errorf("%s: blocks is %v", name, answer["blocks"])
		}
		var codes []string
		for _, f := range answer["findings"].([]any) {
			if at(f, "new") == true {
				codes = append(codes, at(f, "code").(string))
			}
		}
		if strings.Join(codes, " ") != c.codes {
			t.Errorf("%s: new findings %q", name, codes)
		}
		for path, want := range c.wants {
			got := at(answer, path)
			if list, ok := want.([]any); ok && len(list) == 0 {
				if there, ok := got.([]any); !ok || len(there) > 0 {
					t.Errorf("%s: %s is %v", name, path, got)
				}
			} else if got != want {
				t.Errorf("%s: %s is %v, want %v", name, path, got, want)
			}
		}
	}
	if w.read("cordis.patch.yml") != patchText {
		t.Error("a check changed the file")
	}
}

func TestSavePatch(t *testing.T) {
	w := newWorld(t, true)
	first := w.revision()
	text := "# mine\n" + patchText
	saved := w.post("patch", map[string]any{"text": text, "revision": first}, http.StatusOK)
	if w.read("cordis.patch.yml") != text || saved["changed"] != true || saved["revision"] != w.revision() {
		t.Fatalf("saved %v", saved)
	}
	if newest := at(w.get("generations"), "generations.0"); at(newest, "id") != saved["generation"] || !strings.HasSuffix(at(newest, "command").(string), "on the page") {
		t.Errorf("generation %v is not the newest, %v", saved["generation"], newest)
	}

	// Somebody else saved meanwhile.
	conflict := w.post("patch", map[string]any{"text": "[]", "revision": first, "force": true}, http.StatusConflict)
	if at(conflict, "error.class") != "conflict" || at(conflict, "patch.revision") != saved["revision"] || at(conflict, "patch.text") != text {
		t.Errorf("conflict %v", conflict)
	}
	// The same text is no change.
	same := w.post("patch", map[string]any{"text": text, "revision": saved["revision"]}, http.StatusOK)
	if same["changed"] != false || same["generation"] != saved["generation"] {
		t.Errorf("the same text: %v", same)
	}
	// What would not start is refused, and can be forced.
	for _, bad := range []string{"- id: [", text + "- insert:\n    - {id: hello, name: x}\n", text + "- {id: nope, config: {}}\n"} {
		refused := w.post("patch", map[string]any{"text": bad, "revision": w.revision()}, http.StatusUnprocessableEntity)
		if at(refused, "error.class") != "composition" || at(refused, "findings.0.severity") != "error" || w.read("cordis.patch.yml") != text {
			t.Errorf("refused %v", refused)
		}
	}
	w.post("patch", map[string]any{"text": "- id: [", "revision": w.revision(), "force": true}, http.StatusOK)
	if w.read("cordis.patch.yml") != "- id: [" {
		t.Error("force does not save")
	}
	// It can be rolled back.
	w.done(w.run("generations/rollback", map[string]any{"id": saved["generation"]}))
	if w.read("cordis.patch.yml") != text {
		t.Error("it is not rolled back")
	}
}

// TestSaveFirstPatch saves where there is no file.
func TestSaveFirstPatch(t *testing.T) {
	w := newWorld(t, true)
	must(t, os.Remove(w.path("cordis.patch.yml")))
	got := w.get("patch")
	if got["exists"] != false || got["revision"] != action.NoRevision {
		t.Fatalf("got %v", got)
	}
	w.post("patch", map[string]any{"text": patchText, "revision": "sha256-0"}, http.StatusConflict)
	w.post("patch", map[string]any{"text": "[]\n", "revision": action.NoRevision}, http.StatusOK)
	if w.read("cordis.patch.yml") != "[]\n" {
		t.Error("it is not saved")
	}
}

// done wants that an operation went well.
func (w *world) done(op map[string]any) map[string]any {
	w.Helper()
	if op["state"] != "done" || op["error"] != nil || op["ended"] == nil {
		w.Fatalf("operation %v", op)
	}
	return op
}

func TestPackages(t *testing.T) {
	w := newWorld(t, true)
	op := w.done(w.run("plugins/add", map[string]any{"specs": []string{"is-number@6", "@acme/makes"}}))
	if op["kind"] != "add" || op["command"] != "dsh plugin --profile demo add is-number@6 @acme/makes" || op["title"] != "Adding is-number@6, @acme/makes" {
		t.Errorf("operation %v", op)
	}
	if sum := words(op["summary"]); !slices.Contains(sum, "added is-number 6.0.0") || !slices.Contains(sum, "added @acme/makes 1.1.0, now a layer") {
		t.Errorf("summary %q", sum)
	}
	if at(w.get("generations"), "generations.0.command") != op["command"] {
		t.Error("the history has another command")
	}

	// Scripts wait, and run when what was shown is approved.
	made := filepath.Join("node_modules", "@acme", "makes", "made.txt")
	script := at(w.get("plugins"), "scripts.0")
	if at(script, "state") != "pending" {
		t.Fatalf("scripts %v", script)
	}
	other := w.run("plugins/approve", map[string]any{"packages": []any{map[string]any{"spec": at(script, "spec"), "content": "sha512-other"}}})
	if other["state"] != "failed" || at(other, "error.class") != "conflict" {
		t.Errorf("another content was approved: %v", other)
	}
	if _, err := os.Stat(w.path(made)); err == nil || at(w.get("plugins"), "scripts.0.state") != "pending" {
		t.Fatal("scripts ran without an approval")
	}
	w.done(w.run("plugins/approve", map[string]any{"packages": []any{map[string]any{"spec": at(script, "spec"), "content": at(script, "content")}}}))
	if w.read(made) == "" || at(w.get("plugins"), "scripts.0.state") != "built" {
		t.Error("the approved scripts did not run")
	}

	w.done(w.run("plugins/update", map[string]any{"names": []string{"is-number"}, "latest": true}))
	if !strings.Contains(w.read("package.json"), `"is-number": "^7.0.0"`) {
		t.Errorf("package.json %s", w.read("package.json"))
	}
	w.done(w.run("plugins/remove", map[string]any{"names": []string{"is-number", "@acme/makes"}}))
	if strings.Contains(w.read("package.json"), "is-number") {
		t.Error("it is not removed")
	}
	must(t, os.RemoveAll(w.path("node_modules")))
	w.done(w.run("plugins/install", map[string]any{}))
	w.read(filepath.Join("node_modules", "@acme", "hello", "package.json"))
	if sum := words(w.run("plugins/install", nil)["summary"]); !slices.Equal(sum, []string{"nothing to change"}) {
		t.Errorf("summary %q", sum)
	}
}

func TestFailedOperations(t *testing.T) {
	w := newWorld(t, true)
	before := w.read("package.json")
	for spec, class := range map[string]string{"@acme/nope": "package", "@acme/tampered": "package", "@evil/escape": "policy"} {
		op := w.run("plugins/add", map[string]any{"specs": []string{spec}})
		if op["state"] != "failed" || at(op, "error.class") != class || at(op, "error.message") == "" {
			t.Errorf("%s: %v", spec, op)
		}
	}
	w.write("cordis.patch.yml", patchText+"- insert:\n    - {id: collides, name: x}\n")
	op := w.run("plugins/add", map[string]any{"specs": []string{"@acme/collides@1.0.0"}})
	if op["state"] != "failed" || at(op, "error.class") != "composition" || at(op, "findings.0.code") != "duplicate-id" {
		t.Errorf("what does not compose: %v", op)
	}
	if hint := at(op, "error.hint").(string); !strings.Contains(hint, "dsh plugin --profile demo add @acme/collides@1.0.0 --force") {
		t.Errorf("hint %q", hint)
	}
	if op := w.run("generations/rollback", map[string]any{"id": 99}); op["state"] != "failed" {
		t.Errorf("rollback to nothing: %v", op)
	}
	if op := w.run("plugins/remove", map[string]any{"names": []string{"nope"}}); op["state"] != "done" || !slices.Contains(words(op["summary"]), "the profile does not depend on nope") {
		t.Errorf("removing nothing: %v", op)
	}
	if w.read("package.json") != before {
		t.Errorf("package.json changed: %s", w.read("package.json"))
	}
}

// TestOneAtATime begins a second change, and cancels the first.
func TestOneAtATime(t *testing.T) {
	w := newWorld(t, true)
	before := w.read("package.json")
	id := w.post("plugins/add", map[string]any{"specs": []string{"@acme/hangs"}}, http.StatusAccepted)["operation"].(string)
	busy := w.post("plugins/install", map[string]any{}, http.StatusConflict)
	if at(busy, "error.class") != "busy" || busy["operation"] != id {
		t.Errorf("busy %v", busy)
	}
	if op := w.get("operations/" + id); op["state"] != "running" || op["ended"] != nil {
		t.Errorf("it does not run: %v", op)
	}
	w.post("operations/"+id+"/cancel", struct{}{}, http.StatusAccepted)
	op := w.wait(id)
	if op["state"] != "cancelled" || at(op, "error.class") != "interrupted" {
		t.Errorf("cancelled: %v", op)
	}
	w.post("operations/"+id+"/cancel", struct{}{}, http.StatusOK)
	if w.read("package.json") != before || at(w.get("state"), "operation.id") != id {
		t.Error("something is left, or forgotten")
	}
	w.done(w.run("plugins/install", map[string]any{}))
}

// TestPanic makes an operation panic, which must not end anything else.
func TestPanic(t *testing.T) {
	w := newWorld(t, true)
	id, err := w.api.operations.start(Operation{Title: "x"}, func(context.Context, *operation) (outcome, error) { panic("on purpose") })
	must(t, err)
	if op := w.wait(id); op["state"] != "failed" || at(op, "error.message") != "dsh failed: on purpose" {
		t.Errorf("operation %v", op)
	}
}
