//go:build external

package browser

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeyboard goes through the page without a mouse.
func TestKeyboard(t *testing.T) {
	f := newFake(t)
	b := newTab(t)
	b.open(f.URL)
	b.sees("13", "of 16 rows running")
	at := func(want string) {
		t.Helper()
		if got := b.focus(); !strings.HasPrefix(got, want) {
			b.Fatalf("the focus is on %q, not on %q", got, want)
		}
	}
	b.press(kb.Tab)
	at("a  Skip to content")
	b.press(kb.Enter)
	at("main main")
	b.open("about:blank")
	b.open(f.URL)
	b.sees("of 16 rows running")

	// By the list of views to the tree, where the focus goes to the view.
	b.press(kb.Tab)
	b.press(kb.Tab)
	at("a  Overview")
	b.press(kb.Tab)
	at("a  Tree")
	b.press(kb.Enter)
	b.sees("Every row of the composed profile")
	at("main main")

	// The tree is one stop of the tab key; arrows move in it.
	b.press(kb.Tab)
	at("input  Search the tree")
	for range 3 {
		b.press(kb.Tab)
	}
	at("div  @deepseek-ai/dsh-base")
	b.press(kb.ArrowDown)
	at("div  hmr")
	b.press(kb.ArrowLeft)
	at("div  @deepseek-ai/dsh-base")
	b.press(kb.ArrowLeft)
	b.until(`document.activeElement.getAttribute("aria-expanded") === "false"`)
	b.press(kb.ArrowDown)
	at("div  @deepseek-ai/dsh-web-app")
	b.press(kb.Home)
	b.press(kb.ArrowRight)
	b.until(`document.activeElement.getAttribute("aria-expanded") === "true"`)
	b.press(kb.End)
	at("div  your patch")
	b.press("l")
	at("div  llm")
	b.press(kb.Enter)
	b.sees("Changed by", "deepseek-v4-pro")
	b.until(`location.hash === "#/tree/llm"`)
	b.press(kb.Tab)
	at("a  Edit in your patch")

	// A question of the page holds the focus, Escape says no, and the focus is back where it was.
	b.shows("history")
	js[any](b, `void document.querySelector('[data-key="back-3"]').focus()`)
	b.press(kb.Enter)
	b.sees("Roll back to generation 3?")
	b.until(`document.querySelector("dialog").contains(document.activeElement)`)
	b.accessible("a question")
	b.press(kb.Escape)
	b.until(`!document.querySelector("dialog")`)
	at("button  Roll back to 3")
}

// TestMenuOnAPhone opens and closes the list of views where it is not beside them.
func TestMenuOnAPhone(t *testing.T) {
	f := newFake(t)
	b := newTab(t)
	b.look(phone, light)
	b.open(f.URL)
	b.sees("of 16 rows running")
	b.until(`getComputedStyle(document.querySelector("nav")).display === "none"`)
	b.click("#menu")
	b.until(`document.querySelector("#menu").getAttribute("aria-expanded") === "true"`)
	b.keep("menu")
	b.accessible("the menu")
	b.press(kb.Escape)
	b.until(`getComputedStyle(document.querySelector("nav")).display === "none"`)
	b.click("#menu")
	b.click(`nav [data-key="check"]`)
	b.sees("Mistakes in layers")
	b.until(`getComputedStyle(document.querySelector("nav")).display === "none"`)
}

// TestSearch finds rows by what is in them.
func TestSearch(t *testing.T) {
	f := newFake(t)
	b := newTab(t)
	b.open(f.URL + "/#/tree")
	b.sees("webserver")
	b.write(`input[type=search]`, "notes-server")
	b.sees("1 row found")
	b.write(`input[type=search]`, "deepseek-v4")
	b.sees("1 row found")
	b.until(`document.querySelectorAll("[role=treeitem]").length === 2`)
	b.write(`input[type=search]`, "nothing has this")
	b.sees("Nothing matches")
	b.accessible("no results")
	// A search does not forget what was open.
	b.write(`input[type=search]`, " ")
	b.until(`document.querySelectorAll("[role=treeitem]").length === 20`)
}

// TestChangeOfARow goes from a row to the patch that changes it.
func TestChangeOfARow(t *testing.T) {
	f := newFake(t)
	f.on("POST patch/check", func(map[string]any) (int, any) {
		return 200, map[string]any{"findings": []any{}, "blocks": false, "changes": nil}
	})
	b := newTab(t)
	b.open(f.URL + "/#/tree/llm")
	b.sees("Edit in your patch")
	b.click(".detail a.button")
	b.until(`document.activeElement.id === "patch" && document.activeElement.value.slice(document.activeElement.selectionStart).startsWith("- id: llm")`)
	b.shows("tree/webserver")
	b.click(`[data-key="change"]`)
	b.until(`document.querySelector("#patch")?.value.endsWith(` + "`" + `
- id: webserver
  # This replaces the whole config.
  config:
    host: !!js "ctx.webStartup.host"
    port: !!js "ctx.webStartup.port"
` + "`" + `)`)
	b.until(`!document.querySelector('[data-key="save"]').disabled`)
	b.shows("tree/notes%2Fnotes-server")
	b.click(`[data-key="change"]`)
	b.until(`document.querySelector("#patch")?.value.includes("# env: has a secret")`)
}

// TestPatchEditor breaks a patch and mends it.
func TestPatchEditor(t *testing.T) {
	f := newFake(t)
	nothing := map[string]any{"added": []any{}, "removed": []any{}, "changed": []any{}}
	broken := map[string]any{"code": "patch", "severity": "error", "layer": "profile patch", "file": "/home/user/.dsh/profiles/web/cordis.patch.yml", "line": 2, "column": 3, "message": "this is no mapping", "remedy": "", "blocks": true}
	f.on("POST patch/check", func(body map[string]any) (int, any) {
		switch text := body["text"].(string); {
		case strings.Contains(text, "oops"):
			return 200, map[string]any{"findings": []any{broken}, "blocks": true, "changes": nil}
		case strings.Contains(text, "port"):
			return 200, map[string]any{"findings": []any{}, "blocks": false, "changes": map[string]any{"added": []any{}, "removed": []any{}, "changed": []any{
				map[string]any{"row": "webserver", "keys": []any{map[string]any{"key": "config.port", "old": 3080, "new": 4000}}}}}}
		}
		return 200, map[string]any{"findings": []any{}, "blocks": false, "changes": nothing}
	})
	var saved []map[string]any
	conflict := false
	f.on("POST patch", func(body map[string]any) (int, any) {
		saved = append(saved, maps.Clone(body))
		switch {
		case conflict:
			answer := failure("the file changed", "").(map[string]any)
			answer["patch"] = map[string]any{"text": "- id: theirs\n", "path": "/home/user/.dsh/profiles/web/cordis.patch.yml", "revision": "r9", "exists": true, "writable": true}
			return 409, answer
		case strings.Contains(body["text"].(string), "oops") && body["force"] != true:
			answer := failure("the patch was refused", "").(map[string]any)
			answer["findings"] = []any{broken}
			return 422, answer
		}
		return 200, map[string]any{"revision": "r2", "changed": true, "generation": 5, "findings": []any{}, "warnings": []any{}}
	})
	b := newTab(t, "422", "409")
	b.open(f.URL + "/#/patch")
	b.sees("Nothing to mend")
	b.write("#patch", "- id: llm\n  oops")
	b.sees("this is no mapping", "1 error", "not saved")
	b.until(`document.querySelector(".gutter .bad").textContent === "2"`)
	b.keep("error")
	b.accessible("an error in the patch")
	b.click(".list button")
	b.until(`document.activeElement.id === "patch" && document.activeElement.selectionStart === 12`)

	// What is refused is not lost, and what is written outlives a look at another view.
	b.press("s", chromedp.ModifierCtrl)
	b.sees("Not saved. the patch was refused")
	b.shows("tree")
	b.shows("patch")
	b.until(`document.querySelector("#patch").value.includes("oops")`)

	b.write("#patch", "- id: webserver\n  config:\n    port: 4000")
	b.sees("config.port: 3080 → 4000", "No problems")
	b.keep("change")
	b.accessible("a change of the tree")
	b.press("s", chromedp.ModifierCtrl)
	b.sees("Saved.", "generation 5")
	if last := saved[len(saved)-1]; last["revision"] != "r1" || !strings.Contains(last["text"].(string), "port: 4000") {
		t.Errorf("what was sent: %v", last)
	}
	b.until(`document.querySelector('[data-key="save"]').disabled`)

	// Somebody else was faster.
	conflict = true
	b.write("#patch", "- id: webserver\n  config:\n    port: 4001")
	b.press("s", chromedp.ModifierCtrl)
	b.sees("The file was changed on disk since you opened it.")
	b.accessible("a conflict")
	js[any](b, `void [...document.querySelectorAll("button")].find((e) => e.textContent === "Keep mine").click()`)
	conflict = false
	b.click(`[data-key="save"]`)
	b.sees("Saved.")
	if last := saved[len(saved)-1]; last["revision"] != "r9" {
		t.Errorf("what was sent after the conflict: %v", last)
	}
}

// TestOperation follows an installation that works, one that fails, and one that is cancelled.
func TestOperation(t *testing.T) {
	f := newFake(t)
	begun := 0
	forced := make(chan map[string]any, 1)
	f.on("POST plugins/add", func(body map[string]any) (int, any) {
		begun++
		if begun > 4 {
			forced <- body
		}
		return 202, map[string]any{"operation": "op-" + string(rune('0'+begun))}
	})
	cancelled := make(chan bool, 1)
	f.on("POST operations/op-3/cancel", func(map[string]any) (int, any) { cancelled <- true; return 202, map[string]any{} })
	b := newTab(t)
	b.open(f.URL + "/#/plugins")
	b.sees("notes-plugin")
	b.write("#spec", "is-odd")
	b.press(kb.Enter)
	b.until(`!document.querySelector("#operation").hidden`)
	operation := map[string]any{"id": "op-1", "kind": "add", "title": "Adding is-odd", "state": "running", "stage": "fetching", "detail": "is-odd", "done": 1, "total": 4, "error": nil, "summary": []any{}, "warnings": []any{}}
	f.send("operation", operation)
	b.sees("Adding is-odd", "Fetching is-odd, 1 of 4")
	b.until(`document.querySelector("progress").value === 1 && document.querySelector("progress").max === 4`)
	b.keep("running")
	b.accessible("an operation that runs")
	operation["state"], operation["summary"] = "done", []any{"added is-odd 3.0.1", "4 packages"}
	f.send("operation", operation)
	b.sees("added is-odd 3.0.1")
	b.until(`document.querySelector("#spec").value === ""`)
	b.until(`document.querySelector("#said").textContent.includes("done")`)
	b.accessible("an operation that has ended")

	b.write("#spec", "no-such")
	b.click("form .main")
	operation = map[string]any{"id": "op-2", "kind": "add", "title": "Adding no-such", "state": "failed", "error": map[string]any{"message": "no-such: no registry has it", "hint": "dsh plugin search no-such", "class": "package"}, "summary": []any{}, "warnings": []any{}}
	b.sees("Adding no-such")
	f.send("operation", operation)
	b.sees("no registry has it", "dsh plugin search no-such")
	b.keep("failed-operation")
	b.accessible("an operation that failed")
	b.until(`document.querySelector("#spec").value === "no-such"`)

	b.click("form .main")
	operation = map[string]any{"id": "op-3", "kind": "add", "title": "Adding no-such", "state": "running", "stage": "waiting", "detail": "another dsh", "summary": []any{}, "warnings": []any{}}
	f.send("operation", operation)
	b.sees("Waiting for another command another dsh")
	b.click(`[data-key="cancel"]`)
	<-cancelled
	operation["state"] = "cancelled"
	f.send("operation", operation)
	b.sees("Nothing was changed.")
	b.click(`[data-key="close"]`)
	b.until(`document.querySelector("#operation").hidden`)

	// What the check refuses is done when people insist.
	b.click("form .main")
	operation = map[string]any{"id": "op-4", "kind": "add", "title": "Adding no-such", "state": "failed", "error": map[string]any{"message": "the tree would be broken", "hint": "", "class": "composition"},
		"findings": []any{map[string]any{"code": "x", "severity": "error", "message": "row a is there twice", "file": "cordis.patch.yml", "line": 3}}, "summary": []any{}, "warnings": []any{}}
	b.sees("Adding no-such")
	f.send("operation", operation)
	b.sees("the tree would be broken", "row a is there twice")
	b.accessible("a refused operation")
	b.click(`[data-key="force"]`)
	b.until(`document.querySelector("#operation .dot.busy")`)
	if body := <-forced; body["force"] != true {
		t.Errorf("what was sent: %v", body)
	}
}

// TestCallForm calls a tool with the fields of its schema, and with JSON.
func TestCallForm(t *testing.T) {
	f := newFake(t)
	var got any
	f.on("POST servers/notes/call", func(body map[string]any) (int, any) {
		got = body
		return 200, map[string]any{"content": []any{map[string]any{"type": "text", "text": "found <b>one</b> note"}}, "structuredContent": map[string]any{"count": 1}, "isError": false, "ms": 12}
	})
	wants := func(want string) {
		t.Helper()
		text, err := json.Marshal(got)
		if err != nil || string(text) != want {
			t.Errorf("the server got %s, not %s", text, want)
		}
	}
	b := newTab(t)
	b.open(f.URL + "/#/servers")
	b.click(`[data-key="call-search"]`)
	b.sees("Words that a note must have")
	b.accessible("the form of a tool")
	b.click("form .main")
	b.write(`form input[type=text]`, "tea & <cake>")
	b.write(`form input[type=number]`, "3")
	b.click(`form input[type=checkbox]`)
	b.keep("form")
	b.click("form .main")
	b.sees("found <b>one</b> note", "12 ms")
	b.keep("answer")
	b.accessible("the answer of a tool")
	wants(`{"arguments":{"archived":true,"limit":3,"order":"best","query":"tea \u0026 \u003ccake\u003e"},"tool":"search"}`)
	js[any](b, `void [...document.querySelectorAll("button")].find((e) => e.textContent === "Write JSON").click()`)
	b.write("form textarea", `{"query": 1}`)
	b.click("form .main")
	b.until(`document.querySelector("form [role=status]").innerText.includes("12 ms")`)
	wants(`{"arguments":{"query":1},"tool":"search"}`)
	b.write("form textarea", `{"query": `)
	b.click("form .main")
	b.sees("This is no JSON")
}

// TestReconnect loses the server and finds it again.
func TestReconnect(t *testing.T) {
	f := newFake(t)
	b := newTab(t, "ERR_", "Failed to load resource")
	b.open(f.URL)
	b.sees("connected")
	f.drop(true)
	b.until(`document.querySelector("#link").innerText.includes("reconnecting")`)
	f.drop(false)
	b.until(`document.querySelector("#link").innerText.trim() === "connected"`)
}

// TestHostileData shows texts that are HTML as texts.
func TestHostileData(t *testing.T) {
	text, err := os.ReadFile("testdata/api/tree.json")
	if err != nil {
		t.Fatal(err)
	}
	hostile := `<img src=x onerror=alert(1)><script>alert(2)</script>`
	quoted, _ := json.Marshal(hostile)
	bad := strings.ReplaceAll(strings.ReplaceAll(string(text), `"deepseek-v4-pro"`, string(quoted)), `"@deepseek-ai/dsh-llm"`, string(quoted))
	f := newFake(t)
	f.on("GET tree", func(map[string]any) (int, any) { return 200, json.RawMessage(bad) })
	b := newTab(t)
	b.open(f.URL + "/#/tree/llm")
	b.sees(hostile)
	if js[int](b, `document.querySelectorAll("main img, main script").length`) != 0 {
		t.Error("a text became HTML")
	}
}

// TestFailedRequests shows what went wrong, and a way out.
func TestFailedRequests(t *testing.T) {
	f := newFake(t)
	f.on("GET layers", func(map[string]any) (int, any) {
		return 500, failure("reading the profile: disk on fire", "dsh profile repair web")
	})
	b := newTab(t, "500")
	b.open(f.URL + "/#/layers")
	b.sees("disk on fire", "dsh profile repair web", "Try again")
	b.accessible("a failed request")
	f.on("GET layers", nil)
	js[any](b, `void [...document.querySelectorAll("button")].find((e) => e.textContent === "Try again").click()`)
	b.sees("old-bundle")
}
