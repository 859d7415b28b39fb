package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// counting is an agent for goals that want three lines in a file: it writes one in each
// iteration, and its judge looks for them in the diff.
var counting = map[string]string{"pfl-forge.yaml": `agent: counter
parallel_workers: 3
reflection: {enabled: false}
verify: [test ! -e broken]
agents:
  counter:
    read_only: true
    command:
      - sh
      - -c
      - |
        prompt=$(cat)
        file=$(printf %s "$prompt" | grep -o 'file-[a-z]' | head -n 1)
        answer() { printf '{"type": "result", "model": "m", "answer": %s}\n' "$1"; }
        case $FORGE_ROLE in
        intake)
            criteria="\"$file has line 1\", \"$file has line 2\", \"$file has line 3\""
            answer "{\"status\": \"accepted\", \"task\": \"Fill $file.\", \"criteria\": [$criteria], \"type\": \"feature\", \"risk\": \"low\"}" ;;
        execute)
            lines=$(cat "$file" 2>/dev/null | wc -l)
            [ "$lines" -ge 3 ] || echo "line $((lines + 1)) of $file" >> "$file"
            git add -A # with what it had written when it was killed
            git diff --cached --quiet || git commit -q -m "A line of $file"
            answer '{"status": "success", "output": "a line", "semantic_metadata": {"approach": "a line at a time"}}' ;;
        summarize)
            found='{"type": "pattern", "category": "files", "content": "Lines are numbered.", "confidence": "high"}'
            answer "{\"approach\": \"a line at a time\", \"result\": \"success\", \"reason\": \"it is there\", \"artifacts\": [], \"knowledge\": [$found]}" ;;
        judge)
            at() { printf '%s\n' "$prompt" | awk -v w="+$1" '
              /^@@ /{split($3,a,/[+,]/); n=a[2]-1; on=1; next} on && /^[ +]/{n++; if (index($0,w)==1) {print n; exit}}'; }
            list= all=true
            for n in 1 2 3; do
                met=false seen=
                text="line $n of $file" line=$(at "line $n of $file")
                if [ -n "$line" ]; then met=true seen="{\"kind\": \"diff\", \"ref\": \"$file:$line\", \"quote\": \"$text\"}"; else all=false; fi
                list="$list${list:+, }{\"number\": $n, \"evidence\": [$seen], \"met\": $met, \"confidence\": 1, \"note\": \"the diff\"}"
            done
            answer "{\"criteria\": [$list], \"overall_reason\": \"counted\", \"is_complete\": $all, \"suggested_next_action\": \"the next line\"}" ;;
        esac
`}

// TestKilledGoals kills run -9 at random moments of goals' iterations, and then lets one
// run be: each goal is merged once, no iteration was counted twice, and each is told
// once.
func TestKilledGoals(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	const kills = 30
	r := newUnconfined(t, counting)
	names := []string{"a", "b", "c"}
	for _, n := range names {
		args := []string{"goal", "run", "--detach", "--id", "goal-" + n, "Fill file-" + n}
		for i := range 3 {
			args = append(args, "--criterion", fmt.Sprintf("file-%s has line %d", n, i+1))
		}
		r.must(0, args...)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range kills {
		r.killedRun(rng, 100*time.Millisecond, 800*time.Millisecond)
	}
	r.must(0, "run")

	r.git("checkout", "-q", "main")
	times := map[string]int{}
	for _, line := range r.lines(".e8/history.jsonl") {
		times[fmt.Sprint(line["goal"], " ", line["iteration"])]++
	}
	for _, n := range names {
		file := "file-" + n
		if got, want := r.read(file), fmt.Sprintf("line 1 of %s\nline 2 of %s\nline 3 of %s\n", file, file, file); got != want {
			t.Errorf("%s: %q", file, got)
		}
		var s goalStatus
		r.json(&s, "goal", "status", "goal-"+n, "-o", "json")
		if s.Status != "completed" || s.Met != 3 || s.Used > 3 || len(s.Iterations) != s.Used {
			t.Errorf("goal-%s: %+v\n%s", n, s, r.forge("show", "goal-"+n).stdout)
		}
		for i := range s.Used {
			if key := fmt.Sprint("goal-", n, " ", i+1); times[key] != 1 {
				t.Errorf("iteration %s is told %d times", key, times[key])
			}
		}
	}
	merged := 0
	for _, s := range r.subjects() {
		if strings.HasPrefix(s, "Fill file-") { // the goal's title, and not what its agent committed
			merged++
		}
	}
	if merged != len(names) {
		t.Errorf("%d changes merged: %q", merged, r.subjects())
	}
	var tasks []string
	for _, n := range names {
		tasks = append(tasks, "goal-"+n+"-001")
	}
	got := strings.Fields(r.git("log", "--format=%(trailers:key=Forge-Task,valueonly)", "main"))
	if slices.Sort(got); !slices.Equal(got, tasks) {
		t.Errorf("trailers name the tasks %q, want %q", got, tasks)
	}
	r.tidy()
}
