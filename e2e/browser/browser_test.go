//go:build external

// Package browser tests the web page in Chromium: each view with answers from files, and the whole program. It is no place for what can be
// tested without a browser. e2e/external/run installs the browser and what judges accessibility, and says in the environment where they are.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chromium is the browser of all tests, with a process of its own; each test has a tab with cookies of its own.
var chromium context.Context

// scratch is a directory that is removed after all tests.
var scratch string

// axe is the text of axe-core, which judges accessibility.
var axe string

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		mcpServer()
		return
	}
	os.Exit(startAndRun(m))
}

func startAndRun(m *testing.M) int {
	program, judge := os.Getenv("DSH_E2E_CHROMIUM"), os.Getenv("DSH_E2E_AXE")
	if program == "" || judge == "" {
		fmt.Fprintln(os.Stderr, "DSH_E2E_CHROMIUM or DSH_E2E_AXE is not set: start these tests with e2e/external/run")
		return 1
	}
	text, err := os.ReadFile(judge)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	axe = string(text)
	dir, err := os.MkdirTemp("", "dsh-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	scratch = dir
	// Processes of the browser may write for a moment after it has ended.
	defer func() {
		for range 50 {
			if os.RemoveAll(dir) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.DisableGPU,
		chromedp.Flag("lang", "en-GB"), chromedp.Flag("hide-scrollbars", true),
		// The tests run as root in containers, and visit nothing but the page.
		chromedp.NoSandbox,
	)
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	ctx, stop := chromedp.NewContext(ctx)
	defer stop()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "starting Chromium:", err)
		return 1
	}
	chromium = ctx
	return m.Run()
}

// tab is a tab of the browser in which one test looks at the page.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string // errors and warnings of the console, violations of the content security policy among them
}

// newTab opens a tab of the size of a desktop. The test fails when the page says an error on the console; allowed are pieces of those that it
// may say.
func newTab(t *testing.T, allowed ...string) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	b := &tab{T: t, ctx: ctx}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		if t.Failed() {
			b.keep("failed")
		}
		cancel()
		stop()
		reading.Wait()
		for _, m := range b.messages {
			if !contains(m, allowed) {
				t.Errorf("the page said on the console: %s", m)
			}
		}
	})
	messages := chromedp.Console(ctx)
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.Source == "security" {
				b.mu.Lock()
				b.messages = append(b.messages, fmt.Sprintf("%s (%s:%d)", m, m.URL, m.Line))
				b.mu.Unlock()
			}
		}
	})
	b.look(desktop, light)
	return b
}

func contains(text string, pieces []string) bool {
	for _, p := range pieces {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// width is that of a screen.
type width struct {
	name string
	w, h int64
}

var (
	desktop = width{"desktop", 1280, 860}
	phone   = width{"phone", 390, 844}
)

// scheme is the colours that the user prefers.
type scheme string

const (
	light scheme = "light"
	dark  scheme = "dark"
)

// look makes the tab a screen of a size and of colours, without motion.
func (b *tab) look(w width, s scheme) {
	b.Helper()
	options := []chromedp.EmulateViewportOption{}
	if w == phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do("setting the size", chromedp.EmulateViewport(w.w, w.h, options...))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: string(s)}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}); err != nil {
		b.Fatal(err)
	}
}

func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatalf("%s: %v\n%s", what, err, b.text())
	}
}

func (b *tab) open(address string) {
	b.Helper()
	b.do("opening "+address, chromedp.Navigate(address))
}

// text is what the page shows, for messages of failed tests.
func (b *tab) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// js is the value of an expression in the page.
func js[T any](b *tab, expression string) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("evaluating %s: %v", expression, err)
	}
	return value
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingInterval(30*time.Millisecond), chromedp.WithPollingTimeout(time.Minute))); err != nil {
		b.Fatalf("waiting for %s: %v\n%s", expression, err, b.text())
	}
}

// sees waits for the page to show texts.
func (b *tab) sees(texts ...string) {
	b.Helper()
	for _, text := range texts {
		quoted, _ := json.Marshal(text)
		b.until(fmt.Sprintf("document.body.innerText.includes(%s)", quoted))
	}
}

// click clicks, with the mouse, on what a selector of CSS finds, once it is there and enabled.
func (b *tab) click(selector string) {
	b.Helper()
	click := func() error {
		ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
		defer cancel()
		return chromedp.Do(ctx, chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible, chromedp.NodeEnabled))
	}
	err := click()
	for range 3 {
		if err == nil || !strings.Contains(err.Error(), "node with given id") {
			break
		}
		err = click() // the page drew something else in its place
	}
	if err != nil {
		b.Fatalf("clicking %s: %v\n%s", selector, err, b.text())
	}
}

// press presses keys as a person does; what has the focus gets them.
func (b *tab) press(keys string, modifiers ...chromedp.Modifier) {
	b.Helper()
	b.do("pressing a key", chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// write puts text in place of what a field has, as a person does.
func (b *tab) write(selector, text string) {
	b.Helper()
	b.click(selector)
	b.press("a", chromedp.ModifierCtrl)
	b.press(kb.Delete)
	b.do("writing into "+selector, chromedp.KeyEvent(strings.ReplaceAll(text, "\n", "\r")))
}

// becomes puts text in place of what an editor has, in one go, as pasting does.
func (b *tab) becomes(selector, text string) {
	b.Helper()
	b.click(selector)
	b.press("a", chromedp.ModifierCtrl)
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.Fatal(err)
	}
}

// shows goes to a view and waits until it is there.
func (b *tab) shows(view string) {
	b.Helper()
	js[any](b, fmt.Sprintf("void (location.hash = '#/%s')", view))
	name, _, _ := strings.Cut(view, "/")
	b.until(fmt.Sprintf("document.querySelector('#main')?.dataset.view === '%s'", name))
}

// focus is what has the focus, in a few words.
func (b *tab) focus() string {
	b.Helper()
	return js[string](b, `(e => [e.tagName.toLowerCase(), e.id, e.getAttribute("aria-label") || e.innerText?.split("\n")[0] || ""].join(" ").trim())(document.activeElement)`)
}

// accessible fails the test for what axe calls serious or critical.
func (b *tab) accessible(what string) {
	b.Helper()
	if !js[bool](b, "typeof window.axe === 'object'") {
		js[any](b, axe+"\n;undefined")
	}
	found := js[[]struct {
		ID     string
		Impact string
		Help   string
		Nodes  []string
	}](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map(n => n.html.slice(0, 200) + "  " + n.failureSummary.replace(/\s+/g, " "))})))`)
	for _, v := range found {
		b.Errorf("%s: axe finds %s (%s): %s\n  %s", what, v.ID, v.Impact, v.Help, strings.Join(v.Nodes, "\n  "))
	}
}

// artifacts is where pictures of the page are kept.
func artifacts() string {
	if dir := os.Getenv("CI_ARTIFACTS"); dir != "" {
		return dir
	}
	return "artifacts"
}

// keep keeps a picture of what the tab shows.
func (b *tab) keep(name string) {
	b.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(artifacts(), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(artifacts(), strings.ReplaceAll(b.Name(), "/", "-")+"-"+name+".png"), picture, 0o644)
	}
	if err != nil {
		b.Errorf("keeping a picture: %v", err)
	}
}
