package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// totals counts tests, subtests included. A package that failed without a failed test, because
// it did not build or panicked outside of one, counts as one failure.
type totals struct {
	passed, failed, skipped int
}

// String returns the last line of the report.
func (t totals) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// good reports whether CI may pass.
func (t totals) good() bool { return t.passed > 0 && t.failed == 0 && t.skipped == 0 }

// event is one line of go test -json; see go doc test2json. An event without a Test is about
// the package.
type event struct {
	Action  string `json:"action"`
	Package string `json:"package"`
	Test    string `json:"test"`
	Output  string `json:"output"`
	// Elapsed is how long it took, in seconds.
	Elapsed float64 `json:"elapsed"`
}

// A report names at most so many of the slowest tests, and none that took less
// than so many seconds.
const (
	slowest = 25
	slow    = 10
)

// At its end a report says again at most so many of the messages of failed tests, of each so
// many, and one of each line of code, cut after so many bytes: what a test prints of its
// services' logs hides them otherwise, and what failed is not told from what is only noted.
const (
	mostMessages = 100
	mostOfOne    = 12
	longest      = 300
)

// message is how package testing begins what a test says of its failure.
var message = pattern.New(`^ +[a-z0-9_]+\.go:[0-9]+: `)

// slowTest is a test that took long.
type slowTest struct {
	seconds float64
	name    string
}

// reporter turns events into a report. Packages run at the same time, so that their events
// come in any order.
type reporter struct {
	out    io.Writer
	totals totals
	// held is the output of tests that have not ended, by package and test. It is printed
	// when the test fails and dropped when it passes.
	held map[string]map[string][]string
	// failed has the packages with at least one failed test.
	failed map[string]bool
	// messages are those of the tests that failed.
	messages []string
	// slow has the tests, subtests excepted, that took long.
	slow []slowTest
}

// report reads events from in until it ends and writes what is worth reading to out. Lines
// that are not events, such as those of the go command itself, are copied as they are.
func report(in io.Reader, out io.Writer) (totals, error) {
	r := &reporter{out: out, held: map[string]map[string][]string{}, failed: map[string]bool{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.line(line)
		}
		if errors.Is(err, io.EOF) {
			r.printSlowest()
			r.printFailed()
			return r.totals, nil
		}
		if err != nil {
			return r.totals, fmt.Errorf("read the test output: %w", err)
		}
	}
}

// line takes one line of the input.
func (r *reporter) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		r.print(line)
		return
	}
	switch {
	case e.Action == "build-output":
		r.print(e.Output)
	case e.Test != "":
		r.test(e)
	default:
		r.pkg(e)
	}
}

// test takes an event of a test.
func (r *reporter) test(e event) {
	switch e.Action {
	case "output":
		if r.held[e.Package] == nil {
			r.held[e.Package] = map[string][]string{}
		}
		r.held[e.Package][e.Test] = append(r.held[e.Package][e.Test], e.Output)
		return
	case "pass":
		r.totals.passed++
	case "fail":
		r.totals.failed++
		r.failed[e.Package] = true
		r.remember(e)
		r.print(r.held[e.Package][e.Test]...)
	case "skip":
		r.totals.skipped++
		r.print(r.held[e.Package][e.Test]...)
	default:
		return
	}
	delete(r.held[e.Package], e.Test)
	if e.Elapsed >= slow && !strings.Contains(e.Test, "/") {
		r.slow = append(r.slow, slowTest{e.Elapsed, path.Base(e.Package) + "." + e.Test})
	}
}

// printSlowest prints the tests that took longest, the longest first: where a
// run can be made shorter.
func (r *reporter) printSlowest() {
	slices.SortStableFunc(r.slow, func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range r.slow[:min(len(r.slow), slowest)] {
		r.print(fmt.Sprintf("slow: %4.0f s  %s\n", t.seconds, t.name))
	}
}

// remember keeps the first messages of a failed test.
func (r *reporter) remember(e event) {
	seen := map[string]bool{}
	for _, line := range r.held[e.Package][e.Test] {
		at := message.FindString(line)
		if at == "" || seen[at] || len(seen) == mostOfOne {
			continue
		}
		seen[at] = true
		line = strings.TrimSpace(line)
		r.messages = append(r.messages, fmt.Sprintf("failed: %s.%s: %s\n", path.Base(e.Package), e.Test, strings.ToValidUTF8(line[:min(len(line), longest)], "")))
	}
}

// printFailed says again why tests failed.
func (r *reporter) printFailed() {
	r.print(r.messages[:min(len(r.messages), mostMessages)]...)
}

// pkg takes an event of a package.
func (r *reporter) pkg(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" {
			r.print(e.Output)
		}
	case "fail":
		if !r.failed[e.Package] {
			r.totals.failed++
		}
		r.unfinished(e.Package)
	}
}

// unfinished prints the output of the tests that were running when their package died, sorted
// by their names.
func (r *reporter) unfinished(pkg string) {
	var tests []string
	for test := range r.held[pkg] {
		tests = append(tests, test)
	}
	slices.Sort(tests)
	for _, test := range tests {
		r.print(r.held[pkg][test]...)
	}
	delete(r.held, pkg)
}

// print writes to the report. Its errors are ignored: a closed reader shows in the exit status
// of the pipe.
func (r *reporter) print(lines ...string) {
	_, _ = io.WriteString(r.out, strings.Join(lines, ""))
}
