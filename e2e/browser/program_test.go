//go:build external

package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dsh/e2e/npmtest"
)

// serverVariable makes this program an MCP server instead of a test.
const serverVariable = "DSH_BROWSER_TEST_SERVER"

// mcpServer is a server of the Model Context Protocol on standard input and output with one tool, which greets.
func mcpServer() {
	type message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			ProtocolVersion string `json:"protocolVersion"`
			Arguments       struct {
				Name string `json:"name"`
			} `json:"arguments"`
		} `json:"params"`
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
		switch m.Method {
		case "initialize":
			answer["result"] = map[string]any{"protocolVersion": m.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "greeter", "version": "1.0.0"}}
		case "tools/list":
			answer["result"] = map[string]any{"tools": []any{map[string]any{"name": "greet", "description": "Greets somebody", "inputSchema": map[string]any{
				"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string", "description": "Who is greeted"}}, "required": []any{"name"}}}}}
		case "tools/call":
			answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "Good day, " + m.Params.Arguments.Name + "!"}}}
		case "ping":
			answer["result"] = map[string]any{}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}

// build builds the program under test, once.
var build = sync.OnceValues(func() (string, error) {
	program := filepath.Join(scratch, "dsh")
	cmd := exec.Command("go", "build", "-o", program, "dsh/cmd/dsh")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building dsh: %w\n%s", err, out)
	}
	return program, nil
})

// user is somebody with an empty home and a registry of tests.
type user struct {
	*testing.T
	program, home, cwd string
	registry           *npmtest.Server
}

func newUser(t *testing.T) *user {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	registry, err := npmtest.New(filepath.Join("..", "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	dir := t.TempDir()
	u := &user{T: t, program: program, home: filepath.Join(dir, "home"), cwd: filepath.Join(dir, "project"), registry: registry}
	if err := os.Mkdir(u.cwd, 0o777); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(u.program, args...)
	cmd.Dir = u.cwd
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DSH_") && !strings.HasPrefix(v, "npm_config_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "DSH_HOME="+u.home, "HOME="+filepath.Dir(u.home), "npm_config_registry="+u.registry.URL(), "npm_config_fetch_retries=0")
	return cmd
}

// dsh runs a command, which must succeed, and is what it prints.
func (u *user) dsh(args ...string) string {
	u.Helper()
	out, err := u.command(args...).CombinedOutput()
	if err != nil {
		u.Fatalf("dsh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// file writes a file of the profile web.
func (u *user) file(name, text string) {
	u.Helper()
	path := filepath.Join(u.home, "profiles", "web", name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		u.Fatal(err)
	}
}

// patch is the text of the profile's patch file.
func (u *user) patch() string {
	u.Helper()
	text, err := os.ReadFile(filepath.Join(u.home, "profiles", "web", "cordis.patch.yml"))
	if err != nil {
		u.Fatal(err)
	}
	return string(text)
}

var shownAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`)

// web starts the page and is its address. The test fails when dsh does not end cleanly.
func (u *user) web() string {
	u.Helper()
	cmd := u.command("web", "--no-open", "--port", "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		u.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	address := make(chan string, 1)
	var reading sync.WaitGroup
	var printed bytes.Buffer
	reading.Go(func() {
		lines := bufio.NewScanner(io.TeeReader(out, &printed))
		for lines.Scan() {
			if found := shownAddress.FindString(lines.Text()); found != "" {
				select {
				case address <- found:
				default:
				}
			}
		}
		close(address)
	})
	u.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		reading.Wait()
		if err := cmd.Wait(); err != nil {
			u.Errorf("dsh web ended with: %v\n%s%s", err, &printed, &said)
		} else if u.Failed() {
			u.Logf("dsh web said:\n%s%s", &printed, &said)
		}
	})
	select {
	case found, ok := <-address:
		if !ok {
			u.Fatal("dsh web ended without an address")
		}
		return found
	case <-time.After(30 * time.Second):
		u.Fatal("dsh web printed no address")
	}
	return ""
}

// TestProgram does with the whole program what the page is for: it sees the tree, breaks a patch and mends it, installs a package, calls
// a tool of an MCP server, and goes back.
func TestProgram(t *testing.T) {
	u := newUser(t)
	u.dsh("profile", "create", "web")
	server, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u.file("cordis.patch.yml", fmt.Sprintf(`# Mine.
- insert:
    - id: greeter
      name: '@deepseek-ai/dsh-mcp-client'
      config:
        serverName: greeter
        transport: stdio
        command: %q
        env:
          %s: '1'
`, server, serverVariable))
	address := u.web()
	b := newTab(t, "422") // behind the program, so that it closes before
	b.open(address)
	b.until(`location.search === "" && !location.href.includes("key")`) // neither the token nor the key is in the address
	b.sees("connected", "rows running")
	// It is let in later as well, without the token.
	address, _, _ = strings.Cut(address, "?")
	b.open(address)
	b.sees("connected", "rows running")
	b.accessible("the overview")
	b.keep("overview")

	// The tree, with who wrote what.
	b.shows("tree/greeter")
	b.sees("@deepseek-ai/dsh-base", "@deepseek-ai/dsh-web-app", "serverName", "running")
	b.accessible("the tree")
	b.keep("tree")

	// A patch that is broken is told where, and not saved.
	b.shows("patch")
	b.until(`document.querySelector("#patch").value.startsWith("# Mine.")`)
	mine := u.patch()
	b.becomes("#patch", mine+"- id: [broken\n")
	b.until(`document.querySelector(".gutter .bad")`)
	b.keep("broken-patch")
	b.press("s", chromedp.ModifierCtrl)
	b.sees("Not saved.")
	if u.patch() != mine {
		t.Error("the broken patch was saved")
	}
	// Mended, it says what would change, and is live when it is saved.
	b.becomes("#patch", mine+"- id: llm\n  config:\n    provider: deepseek-official\n    model: my-model\n")
	b.sees("config.model: deepseek-v4-flash → my-model")
	b.press("s", chromedp.ModifierCtrl)
	b.sees("Saved.")
	if !strings.Contains(u.patch(), "my-model") {
		t.Errorf("the patch on disk is\n%s", u.patch())
	}
	b.shows("tree/llm")
	b.sees("my-model")
	b.until(`document.querySelector("#row-state").innerText.includes("running")`)
	// What another program writes is live too, and what does not start is not taken.
	u.file("cordis.patch.yml", strings.ReplaceAll(u.patch(), "    provider: deepseek-official\n", ""))
	b.shows("overview")
	b.sees("Your last edit was not taken", "provider")
	b.keep("refused-edit")
	b.accessible("an edit that was not taken")
	u.file("cordis.patch.yml", mine)
	b.until(`!document.body.innerText.includes("Your last edit was not taken")`)

	// A package from the registry, with its progress.
	b.shows("plugins")
	b.write("#spec", "is-odd@3.0.0")
	b.click("form .main")
	b.until(`document.querySelector("#operation .dot.ok")`)
	b.sees("is-odd", "3.0.0")
	b.keep("installed")
	if !strings.Contains(u.dsh("plugin", "--profile", "web", "list"), "is-odd") {
		t.Error("is-odd is not in the profile")
	}
	b.write("#spec", "no-such-package")
	b.click("form .main")
	b.until(`document.querySelector("#operation .dot.bad")`)
	b.sees("no-such-package")

	// A tool of the server.
	b.shows("servers")
	b.sees("connected")
	b.click(`[data-key="call-greet"]`)
	b.write("form input", "Ada")
	b.click("form .main")
	b.sees("Good day, Ada!")
	b.keep("called")

	// And back to before all this.
	b.shows("history")
	b.sees("newest")
	b.keep("history")
	first := js[string](b, `[...document.querySelectorAll("tbody tr")].at(-1).querySelector("[data-key]").dataset.key`)
	b.click(fmt.Sprintf(`[data-key=%q]`, first))
	b.sees("Roll back to generation")
	b.click("dialog .main")
	b.until(`document.querySelector("#operation .dot.ok")`)
	if strings.Contains(u.dsh("plugin", "--profile", "web", "list"), "is-odd") {
		t.Error("is-odd is still in the profile")
	}
	for _, view := range views {
		b.shows(view)
		b.accessible(view)
	}
}

// TestNewcomer does on the page what docs/start.md tells newcomers to do, from an empty home: it starts the page, adds the plugin that is
// made there, changes a row, and takes that back.
func TestNewcomer(t *testing.T) {
	u := newUser(t)
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "start.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("(?ms)^```(?:yaml|json) ~/project/(greeter/[^\n]+)\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1)
	if len(files) != 3 {
		t.Fatalf("the guide has %d files", len(files))
	}
	for _, f := range files {
		path := filepath.Join(u.cwd, filepath.FromSlash(f[1]))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f[2]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	address := u.web()
	b := newTab(t) // behind the program, so that it closes before
	b.open(address)
	b.sees("of 17 rows running", "What to do next")
	b.click("main a[href='#/plugins']")
	b.sees("No packages yet")
	b.write("#spec", "./greeter")
	b.click("form .main")
	b.until(`document.querySelector("#operation .dot.ok")`)
	b.click(`[data-key="close"]`)
	b.sees("bundle, layer 3")
	b.shows("tree/greeter")
	b.sees("Brought by", "customSkillDirs")
	b.until(`document.querySelector("#row-state").innerText.includes("running")`)
	b.shows("skills")
	b.sees("Greets people in the language of their city", "Look up which language")
	b.keep("skill")

	b.shows("tree/llm")
	b.click(`[data-key="change"]`)
	b.sees("Nothing to mend")
	b.becomes("#patch", strings.ReplaceAll(js[string](b, `document.querySelector("#patch").value`), "deepseek-v4-flash", "my-model"))
	b.sees("config.model: deepseek-v4-flash → my-model")
	b.press("s", chromedp.ModifierCtrl)
	b.sees("Saved.")
	b.shows("tree/llm")
	b.sees("my-model", "your patch")
	b.until(`document.querySelector("#row-state").innerText.includes("running")`)

	b.shows("history")
	b.click(`tbody tr:nth-child(2) button`)
	b.sees("Roll back to generation")
	b.click("dialog .main")
	b.until(`document.querySelector("#operation .dot.ok")`)
	b.shows("tree/llm")
	b.until(`!document.querySelector(".detail").innerText.includes("my-model") && document.querySelector(".detail").innerText.includes("deepseek-v4-flash")`)
	b.shows("skills")
	b.sees("Greets people")

	// An Agent Plugin is a bundle like others, with a word of what it is.
	u.dsh("agent-plugin", "new", "cities")
	b.shows("plugins")
	b.write("#spec", "./cities")
	b.click("form .main")
	b.sees("Agent Plugin, layer 4")
	b.shows("skills/cities")
	b.sees("Say here what the skill does")
}
