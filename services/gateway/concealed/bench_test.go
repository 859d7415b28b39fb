package concealed_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
)

// hostile are texts of about a size that take long to read for who reads them in a simple way.
var hostile = map[string]func(size int) string{
	"images in images":  func(n int) string { return strings.Repeat("![", n/6) + "a" + strings.Repeat("](x)", n/6) },
	"titles in images":  func(n int) string { return strings.Repeat("![", n/11) + "a" + strings.Repeat("](x 't'  )", n/11) },
	"comments":          repeat("<!-- a --> b "),
	"open comments":     repeat("a <!-- "),
	"open instructions": repeat("a <? "),
	"open declarations": repeat("a <!A "),
	"open data":         repeat("a <![CDATA[ "),
	"open tags":         repeat("<a b='"),
	"brackets":          repeat("["),
	"closed brackets":   func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"open links":        repeat("[a]("),
	"open destinations": repeat("[a](<b"),
	"references":        repeat("[a][b] "),
	"definitions":       repeat("[a]: b\n"),
	"open definitions":  repeat("[a]: b 'c\n"),
	"stars":             repeat("*a "),
	"stars and dashes":  repeat("*a_ "),
	"pairs of stars":    repeat("a**b"),
	"code spans":        ticks,
	"many of brackets":  repeat(strings.Repeat("[", 4000) + "\n\n"),
	"many of images":    repeat(strings.Repeat("![", 700) + "a" + strings.Repeat("](x)", 700) + "\n\n"),
	"many of code":      repeat(ticks(4000) + "\n\n"),
	"quotes":            repeat(">"),
	"quotes by line":    repeat("> a\n> > b\n"),
	"lists in lists":    repeat("- "),
	"numbers in lists":  repeat("1. "),
	"list by line":      repeat("- a\n"),
	"deep list by line": deep,
	"wide list by line": wide,
	"blanks in a list":  func(n int) string { return deep(n/2) + strings.Repeat("\n", n/2) },
	"blanks in lists":   func(n int) string { return wide(n/2) + strings.Repeat("\n", n/2) },
	"sections":          repeat("<details>\n\n"),
	"fences":            repeat("```a b\n"),
	"entities":          repeat("&#8203;"),
	"rows":              func(n int) string { return "|a|\n|-|\n" + strings.Repeat("|a|b|\n", n/6) },
	"cells":             func(n int) string { return "|a|\n|-|\n" + strings.Repeat("|a", n/2) },
	"heads of tables":   repeat("|a|\n|-|\n"),
	"formulas":          repeat("$a$ "),
	"open formulas":     repeat("$$a "),
	"formulas in open":  repeat("\\(a $b$ "),
	"blanks":            func(n int) string { return "<p>" + strings.Repeat(" ", n/2) + strings.Repeat("<!--a-->", n/16) },
	"lines":             repeat("a\n\n"),
	"tabs":              repeat("\t- "),
	"escapes":           repeat("\\*"),
	"footnotes":         repeat("[^a]: b\n"),
	"addresses":         repeat("<a:b"),
	"headings":          repeat("# a\n"),
	"underlines":        repeat("a\n=\n"),
}

// repeat returns texts that have one part again and again.
func repeat(part string) func(int) string {
	return func(size int) string { return strings.Repeat(part, size/len(part)) }
}

// ticks returns code spans that begin with ever more marks, and have no end.
func ticks(size int) string {
	var b strings.Builder
	for n := 1; b.Len() < size; n++ {
		b.WriteString(strings.Repeat("`", n) + "a")
	}
	return b.String()
}

// deep returns a list whose items are each in the one before.
func deep(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		b.WriteString(strings.Repeat("  ", n) + "- a\n")
	}
	return b.String()
}

// wide returns a list of which each line begins fifty items in those of the line before.
func wide(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		b.WriteString(strings.Repeat(" ", 100*n) + strings.Repeat("- ", 50) + "a\n")
	}
	return b.String()
}

// processorTime returns how long this process has been carried out.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkIn has how much processor time 64 KB take, and how many times as
// much as 8 KB: 8 is linear.
func BenchmarkIn(b *testing.B) {
	for name, text := range hostile {
		b.Run(name, func(b *testing.B) {
			small, large := text(8<<10), text(64<<10)
			n := 0 // another title each time: a text that was read is not read again
			took := func(body string) time.Duration {
				n++
				begin := processorTime(b)
				concealed.In(fmt.Sprint(n), body)
				return processorTime(b) - begin
			}
			var first, second time.Duration
			for b.Loop() {
				first += took(small)
				second += took(large)
			}
			b.ReportMetric(second.Seconds()*1000/float64(b.N), "ms/64KB")
			b.ReportMetric(second.Seconds()/first.Seconds(), "64KB/8KB")
		})
	}
}
