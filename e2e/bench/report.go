package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// sample is one install.
type sample struct {
	Fixture  string   `json:"fixture"`
	Scenario scenario `json:"scenario"`
	Manager  string   `json:"manager"`
	Run      int      `json:"run"`
	Wall     float64  `json:"wallSeconds"`
	User     float64  `json:"userSeconds"`
	System   float64  `json:"systemSeconds"`
	Peak     float64  `json:"peakMiB"` // of the largest process
}

// failed is an install that did not succeed. What its manager was to do with that fixture afterwards is left out.
type failed struct {
	Fixture  string   `json:"fixture"`
	Scenario scenario `json:"scenario"`
	Manager  string   `json:"manager"`
	Reason   string   `json:"reason"`
}

// tree is what a manager laid out.
type tree struct {
	Fixture  string   `json:"fixture"`
	Manager  string   `json:"manager"`
	Packages int      `json:"packages"`
	Files    int      `json:"files"`
	Verdict  *verdict `json:"verdict,omitempty"`
}

// verdict is what e2e/judge says of a tree.
type verdict struct {
	Packages int       `json:"packages"`
	Edges    int       `json:"edges"`
	Findings []finding `json:"findings"`
}

type finding struct {
	Kind string `json:"kind"` // dependency, optional, peer
	Text string `json:"text"`
}

// machine is where the samples were taken.
type machine struct {
	System     string `json:"system"`
	CPUs       int    `json:"cpus"`
	Filesystem string `json:"filesystem"`
	Load       string `json:"load"`
	Revision   string `json:"revision"` // of dsh
}

func describe(dir string) machine {
	revision, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		revision = []byte("unknown")
	}
	average, _, _ := strings.Cut(load(), " ")
	return machine{runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), filesystem(dir), average, strings.TrimSpace(string(revision))}
}

// report is all that was measured.
type report struct {
	Machine  machine   `json:"machine"`
	Start    time.Time `json:"start"`
	Samples  []sample  `json:"samples"`
	Failures []failed  `json:"failures"`
	Trees    []tree    `json:"trees"`
}

func (r *report) json(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o666)
}

// fixtures names those that were measured, in that order.
func (r *report) fixtures() (names []string) {
	for _, one := range r.Samples {
		if !slices.Contains(names, one.Fixture) {
			names = append(names, one.Fixture)
		}
	}
	return names
}

// of is the samples of one cell in the order of runs.
func (r *report) of(fixture string, s scenario, manager string) []sample {
	var cell []sample
	for _, one := range r.Samples {
		if one.Fixture == fixture && one.Scenario == s && one.Manager == manager {
			cell = append(cell, one)
		}
	}
	return cell
}

// wall and cpu are what is compared: the time that passed, and the time that all cores together worked, which other work on the machine
// disturbs less.
func wall(one sample) float64 { return one.Wall }
func cpu(one sample) float64  { return one.User + one.System }

// quotients divides a number of dsh by that of another manager, run by run.
func quotients(ours, theirs []sample, number func(sample) float64) []float64 {
	byRun := map[int]float64{}
	for _, one := range theirs {
		byRun[one.Run] = number(one)
	}
	var list []float64
	for _, one := range ours {
		if other := byRun[one.Run]; other > 0 {
			list = append(list, number(one)/other)
		}
	}
	return list
}

// goal says whether a cell of dsh reaches what it is to reach beside another manager, and "" where there is no goal: 1.3 times the time
// of bun, or 20 ms more where that is more; a fifth of the time of pnpm 10 when cold, and a tenth otherwise.
func goal(s scenario, manager string, ours, theirs float64) string {
	var limit float64
	switch {
	case manager == "bun":
		limit = max(1.3*theirs, theirs+0.020)
	case manager == "pnpm10" && s == cold:
		limit = theirs / 5
	case manager == "pnpm10":
		limit = theirs / 10
	default:
		return ""
	}
	if ours <= limit {
		return "yes"
	}
	return "**no**"
}

// memoryGoal is the most memory that dsh may take, in MiB.
const memoryGoal = 256

// failure is an error if something of dsh went wrong. How fast it is, is none.
func (r *report) failure() error {
	var errs []error
	for _, f := range r.Failures {
		if f.Manager == "dsh" {
			errs = append(errs, fmt.Errorf("dsh, %s, %s: %s", f.Fixture, f.Scenario, f.Reason))
		}
	}
	for _, t := range r.Trees {
		if t.Manager != "dsh" || t.Verdict == nil {
			continue
		}
		// What a peer finds may be nobody's fault: two packages can ask for what no tree has.
		for _, f := range t.Verdict.Findings {
			if f.Kind != "peer" {
				errs = append(errs, fmt.Errorf("dsh, %s: %s", t.Fixture, f.Text))
			}
		}
	}
	return errors.Join(errs...)
}

func (r *report) markdown(w io.Writer) error {
	p := &printer{w: w}
	p.line("Revision %s on %s with %d cores, %s, load %s at the start, %s UTC.", r.Machine.Revision, r.Machine.System, r.Machine.CPUs,
		r.Machine.Filesystem, r.Machine.Load, r.Start.Format("2006-01-02 15:04"))
	p.line("")
	p.line("| fixture | scenario | program | runs | median s (min–max) | user s | system s | peak MiB | dsh ÷ it (min–max) | CPU ÷ its | goal |")
	p.line("| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: | --- |")
	for _, fixture := range r.fixtures() {
		for _, s := range scenarios {
			ours := r.of(fixture, s, "dsh")
			for _, m := range managers {
				r.row(p, fixture, s, m.name, ours)
			}
		}
	}
	if len(r.Trees) > 0 {
		p.line("")
		p.line("| fixture | program | packages | files | judged edges | dependencies not met | peers not met |")
		p.line("| --- | --- | --: | --: | --: | --: | --: |")
	}
	for _, t := range r.Trees {
		edges, dependencies, peers := "", "", ""
		if t.Verdict != nil {
			n := 0
			for _, f := range t.Verdict.Findings {
				if f.Kind == "peer" {
					n++
				}
			}
			edges, dependencies, peers = fmt.Sprint(t.Verdict.Edges), fmt.Sprint(len(t.Verdict.Findings)-n), fmt.Sprint(n)
		}
		p.line("| %s | %s | %d | %d | %s | %s | %s |", t.Fixture, t.Manager, t.Packages, t.Files, edges, dependencies, peers)
	}
	for _, t := range r.Trees {
		if t.Manager != "dsh" || t.Verdict == nil || len(t.Verdict.Findings) == 0 {
			continue
		}
		p.line("")
		p.line("What the judge finds in dsh's tree of %s:", t.Fixture)
		p.line("")
		for _, f := range t.Verdict.Findings {
			p.line("- %s", f.Text)
		}
	}
	for _, f := range r.Failures {
		p.line("")
		p.line("%s failed in %s, %s:", f.Manager, f.Fixture, f.Scenario)
		p.line("")
		p.line("```\n%s\n```", f.Reason)
	}
	return p.err
}

func (r *report) row(p *printer, fixture string, s scenario, manager string, ours []sample) {
	cell := r.of(fixture, s, manager)
	if len(cell) == 0 {
		return
	}
	took := spreadOf(cell, wall)
	user := spreadOf(cell, func(one sample) float64 { return one.User })
	system := spreadOf(cell, func(one sample) float64 { return one.System })
	memory := spreadOf(cell, func(one sample) float64 { return one.Peak })
	quotient, work, reached := "", "", ""
	switch pairs := quotients(ours, cell, wall); {
	case manager == "dsh" && memory.max > memoryGoal:
		reached = fmt.Sprintf("**no**: %.0f MiB", memory.max)
	case manager == "dsh":
	case len(pairs) > 0:
		of := spreadIn(pairs)
		quotient = fmt.Sprintf("%.2f (%.2f–%.2f)", of.median, of.min, of.max)
		reached = goal(s, manager, spreadOf(ours, wall).median, took.median)
		if pairs := quotients(ours, cell, cpu); len(pairs) > 0 { // a few milliseconds may be counted as none
			work = fmt.Sprintf("%.2f", spreadIn(pairs).median)
		}
	}
	p.line("| %s | %s | %s | %d | %.3f (%.3f–%.3f) | %.2f | %.2f | %.0f | %s | %s | %s |", fixture, s, manager, len(cell),
		took.median, took.min, took.max, user.median, system.median, memory.max, quotient, work, reached)
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
