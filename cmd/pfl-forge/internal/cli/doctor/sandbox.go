package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/agent/gateway"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/run"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// isolation checks the parts that keep agents and commands away from the machine, each
// part by itself. A variable of the environment that cannot be read is broken, since a
// run refuses to start with it; the checks that do not need it are made nevertheless.
func isolation(ctx context.Context, a *kit.App, root string, cfg *config.Project) []diagnosis.Finding {
	word, bounds, err := run.Demand(a)
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("sandbox", diagnosis.Broken, err.Error(), "correct it, or unset it"), checkProcesses(), checkKey(a, cfg)}
	}
	found := append(checkSandbox(ctx, word, &cfg.Policy), checkProcesses())
	return append(append(found, checkBounds(root, word, bounds)...), checkKey(a, cfg))
}

// checkSandbox makes a sandbox, because whether that is allowed can be found out in no other
// way.
//
// Where the project requires a sandbox it is tried whatever the word of this
// machine's user is. Networks are tried by themselves, because a kernel may
// allow user namespaces and refuse those of networks.
func checkSandbox(ctx context.Context, word demand.Demand, policy *config.Policy) []diagnosis.Finding {
	required := word == demand.Require || policy.Sandbox == config.SandboxRequire
	if word == demand.Unconfined && !required {
		return []diagnosis.Finding{diagnosis.New(
			"sandbox", diagnosis.Warning, "unconfined, as "+demand.Variable+" says: agents and commands reach your files, keys, logins and network",
			"unset "+demand.Variable,
		)}
	}
	if err := process.Probe(ctx, sandbox.NetworkFull); err != nil {
		f := diagnosis.New(
			"sandbox", diagnosis.Warning, fmt.Sprintf("%v: what an agent or another system wrote is refused; recipes that you ask for run unconfined", err),
			"allow user namespaces for this user (a sysctl, AppArmor, or the container's seccomp profile may block them); "+
				demand.Variable+"="+string(demand.Unconfined)+" runs everything with access to all that is yours",
		)
		if required {
			f.Health, f.Detail = diagnosis.Broken, fmt.Sprintf("%v, and one is required: nothing runs", err)
		}
		return []diagnosis.Finding{f}
	}
	found := []diagnosis.Finding{
		diagnosis.New("sandbox", diagnosis.Healthy,
			"agents and commands see the system's programs, their checkout, a home of their own, and what policy in pfl-forge.yaml grants", ""),
	}
	network := diagnosis.New("network", diagnosis.Healthy, fmt.Sprintf("agents: %s; recipes and verify commands: %s", policy.Network, policy.CommandNetwork), "")
	if !sandbox.HidesAbstractSockets() {
		network.Detail += "; with full, abstract sockets are reachable (Linux 6.12 hides them)"
	}
	if err := process.Probe(ctx, sandbox.NetworkNone); err != nil {
		network.Detail, network.Health = fmt.Sprintf("%s; it cannot be restricted here: %v", network.Detail, err), diagnosis.Warning
		if policy.Network != config.NetworkFull || policy.CommandNetwork != config.NetworkFull {
			network.Health, network.Hint = diagnosis.Broken, "set policy.network and policy.command_network to full, or allow network namespaces"
		}
	}
	return append(found, network)
}

// checkProcesses says whether the number of processes of a command is limited.
func checkProcesses() diagnosis.Finding {
	if how := process.LimitedBy(); how != "" {
		return diagnosis.New("processes", diagnosis.Healthy, fmt.Sprintf("at most %d at once per command, %s", sandbox.DefaultProcesses, how), "")
	}
	return diagnosis.New("processes", diagnosis.Warning, "the number of processes a command may start is not limited; all of them end with it", "")
}

// checkBounds says how much of this machine a command may take: what it writes is in the
// state of the repository at root. A bound that was asked for and cannot be kept is
// broken, because no command runs then. One that was not asked for is a warning at most.
func checkBounds(root string, word demand.Demand, bounds demand.Bounds) []diagnosis.Finding {
	memory := diagnosis.New("memory", diagnosis.Warning,
		"what a command takes is not limited; when it is short, commands are ended first, the largest before others", "")
	switch most := process.MemoryLimit(bounds); {
	case most > 0:
		memory = diagnosis.New("memory", diagnosis.Healthy, "at most "+render.Size(most)+" per command, by a control group", "")
	case bounds.Memory > 0:
		memory.Health, memory.Detail = diagnosis.Broken, demand.MemoryVariable+" bounds the memory of commands, and nothing can hold them to it here: none runs"
		memory.Hint = "unset " + demand.MemoryVariable + ", or let pfl-forge have control groups that limit memory"
	}
	most := process.DiskLimit(root, bounds)
	disk := diagnosis.New("writing", diagnosis.Healthy, "at most "+render.Size(most)+" per command in each directory that it may write to", "")
	if word == demand.Unconfined || most == 0 {
		disk.Health, disk.Detail = diagnosis.Warning, "what a command writes without a sandbox is not limited"
	}
	return []diagnosis.Finding{memory, disk}
}

// providers names for each back end that goes through the gateway whose models it uses.
var providers = map[string]gateway.Provider{
	config.AgentClaude: gateway.Anthropic, config.AgentCodex: gateway.OpenAI, config.AgentGemini: gateway.Gemini,
	config.AgentOpencode: gateway.Anthropic,
}

// checkKey says where the key for the model is, and never what it is. Keys are read from
// the environment, as a run does, and only their names and accounts are printed. Only the
// project's own agent is looked at, not those of roles. That a key is missing is a warning.
func checkKey(a *kit.App, cfg *config.Project) diagnosis.Finding {
	accounts, err := gateway.Accounts(func(name string) (string, error) { return a.Getenv(name), nil })
	if err != nil {
		return diagnosis.New("model key", diagnosis.Broken, err.Error(), "")
	}
	var names []string
	found := false
	for i := range accounts {
		names = append(names, accounts[i].String())
		found = found || accounts[i].Provider == providers[cfg.Agent]
	}
	switch {
	case len(names) > 0 && (found || providers[cfg.Agent] == ""):
		return diagnosis.New("model key", diagnosis.Healthy, strings.Join(names, "; ")+". It stays in this process: an agent gets a token for each call", "")
	case providers[cfg.Agent] == "":
		return diagnosis.New("model key", diagnosis.Healthy, "no API key set; agent \""+cfg.Agent+"\" does not need one", "")
	}
	return diagnosis.New(
		"model key", diagnosis.Warning, "no API key set for agent \""+cfg.Agent+"\"",
		"set "+strings.Join(gateway.Keys(providers[cfg.Agent]), " or "),
	)
}
