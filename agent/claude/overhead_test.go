package claude

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// BenchmarkOverhead makes the shortest call that does some work, with our supervision,
// the same in a sandbox, and with the same arguments without any, all in turn.
func BenchmarkOverhead(b *testing.B) {
	model := agenttest.NewServer(b)
	url := model.Script("model", agenttest.Steps(
		agenttest.Use("Bash", map[string]any{"command": "true"}),
		agenttest.Answer(map[string]any{"summary": "done"}),
	))
	a := New(Options{
		Path: agenttest.ClaudeCLI(b), Owner: process.NewOwner(b.TempDir()),
		Env: []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=k"},
	})
	ways := map[string]func(context.Context, agent.Call) error{
		"bare":       a.bare,
		"supervised": a.supervised,
		"sandboxed": func(ctx context.Context, call agent.Call) error {
			spec := sandbox.Spec{Mounts: sandbox.System(os.Getenv("PATH"), os.Getenv("HOME"))}
			for _, dir := range []string{call.Dir, call.ScratchDir, call.StateDir} {
				spec = spec.With(sandbox.Path(dir, sandbox.Writable)...)
			}
			call.Sandbox = &spec
			return a.supervised(ctx, call)
		},
	}
	took, cpu := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for name, run := range ways { // in any order, which is not always the same
			call := agent.Call{
				Role: agent.RoleImplement, Dir: b.TempDir(), ScratchDir: b.TempDir(), StateDir: b.TempDir(),
				Prompt: "Do it.", System: "You implement.", Model: "sonnet", Tools: []string{"Bash", "Read", "Write", "Edit", "Glob", "Grep"},
				Schema: agent.ImplementationSchema, Session: agent.Session{ID: agent.NewSessionID()},
			}
			started, before := time.Now(), processorTime(b)
			if err := run(b.Context(), call); err != nil {
				b.Fatal(name, err)
			}
			took[name] = append(took[name], time.Since(started).Seconds()*1000)
			cpu[name] = append(cpu[name], (processorTime(b)-before).Seconds()*1000)
		}
	}
	median := func(list []float64) float64 {
		slices.Sort(list)
		return list[len(list)/2]
	}
	bare, bareCPU := median(took["bare"]), median(cpu["bare"])
	b.ReportMetric(bare, "bare-ms")
	b.ReportMetric(median(took["supervised"])/bare, "ratio")
	b.ReportMetric(median(took["sandboxed"])/bare, "ratio-sandboxed")
	b.ReportMetric(bareCPU, "bare-cpu-ms")
	b.ReportMetric(median(cpu["supervised"])/bareCPU, "cpu-ratio")
	b.ReportMetric(median(cpu["sandboxed"])/bareCPU, "cpu-ratio-sandboxed")
}

// processorTime is that of this process, with the scripted model, and of all that it
// started and that has ended.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var total int64
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		total += u.Utime.Nano() + u.Stime.Nano()
	}
	return time.Duration(total)
}

func (a *Agent) supervised(ctx context.Context, call agent.Call) error {
	_, err := a.Run(ctx, call, func(agent.Event) {})
	return err
}

func (a *Agent) bare(ctx context.Context, call agent.Call) error {
	c, _, err := a.command(ctx, call)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout = c.Dir, c.Env, bytes.NewReader(c.Stdin), &bytes.Buffer{}
	return cmd.Run()
}
