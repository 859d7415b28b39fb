package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	tests := map[string]struct {
		in     string
		out    string
		totals totals
		good   bool
	}{
		"a passing test is counted and silent": {
			in: `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`,
			out:    "ok  \tp\t0.1s\n",
			totals: totals{passed: 1},
			good:   true,
		},
		"a failing test says what it said": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: boom\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`,
			out:    "    a_test.go:3: boom\nFAIL\tp\t0.1s\nfailed: p.TestA: a_test.go:3: boom\n",
			totals: totals{failed: 1},
		},
		"why a test failed is said again at the end, without all else that it said": {
			in: `{"Action":"output","Package":"m/p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"m/p","Test":"TestA","Output":"    a_test.go:3: boom\n"}
{"Action":"output","Package":"m/p","Test":"TestA","Output":"        more of it\n"}
{"Action":"output","Package":"m/p","Test":"TestA","Output":"    a_test.go:3: boom again\n"}
{"Action":"output","Package":"m/p","Test":"TestA","Output":"    a_test.go:6: four\n"}
{"Action":"fail","Package":"m/p","Test":"TestA","Elapsed":12}
`,
			out: "=== RUN   TestA\n    a_test.go:3: boom\n        more of it\n    a_test.go:3: boom again\n    a_test.go:6: four\n" +
				"slow:   12 s  p.TestA\nfailed: p.TestA: a_test.go:3: boom\nfailed: p.TestA: a_test.go:6: four\n",
			totals: totals{failed: 1},
		},
		"a skipped test is shown and not good": {
			in: `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: no network\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p"}
`,
			out:    "    b_test.go:3: no network\n",
			totals: totals{passed: 1, skipped: 1},
		},
		"a package without tests is no skip": {
			in: `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}
{"Action":"skip","Package":"q"}
`,
			out:    "?   \tq\t[no test files]\n",
			totals: totals{passed: 1},
			good:   true,
		},
		"a package that does not build is one failure": {
			in: `{"ImportPath":"p","Action":"build-output","Output":"p/a.go:1:1: expected 'package'\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}
`,
			out:    "p/a.go:1:1: expected 'package'\nFAIL\tp [build failed]\n",
			totals: totals{failed: 1},
		},
		"a package that dies shows its running tests": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"half way\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`,
			out:    "FAIL\tp\t0.1s\nhalf way\n",
			totals: totals{failed: 1},
		},
		"slow tests are named, the slowest first, without their subtests": {
			in: `{"Action":"pass","Package":"m/p","Test":"TestA/one","Elapsed":19}
{"Action":"pass","Package":"m/p","Test":"TestA","Elapsed":20.4}
{"Action":"pass","Package":"m/p","Test":"TestB","Elapsed":9.9}
{"Action":"pass","Package":"m/q","Test":"TestC","Elapsed":100}
`,
			out:    "slow:  100 s  q.TestC\nslow:   20 s  p.TestA\n",
			totals: totals{passed: 4},
			good:   true,
		},
		"lines that are no events are kept": {
			in:  "go: no modules\n",
			out: "go: no modules\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			got, err := report(strings.NewReader(tt.in), &out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.out, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if got != tt.totals {
				t.Errorf("totals: got %v, want %v", got, tt.totals)
			}
			if got.good() != tt.good {
				t.Errorf("good: got %v, want %v", got.good(), tt.good)
			}
		})
	}
}
