package subjects

import (
	"fmt"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// projectMark stands before the intent in the subject of a command that the project of the
// project issued: the end of the intent removes its own commands, and not those.
const projectMark = "_"

// ofProject reports whether the project's machine issued a command and gets its
// result.
func ofProject(c *forge.Command) bool {
	r := forge.Result{To: c.To, Attempt: c.Attempt}
	return r.Machine().IsProject()
}

// Command names a single command: it is published on a subject of its
// own, so that publishing it again is refused. One that any replica may take is for those of
// its project's group.
func (g Groups) Command(c *forge.Command) (string, error) {
	if _, err := forge.ParseStep(string(c.Attempt.Step)); err != nil {
		return "", err
	}
	if err := CheckIntent(c.To); err != nil {
		return "", err
	}
	task := None
	if c.Attempt.Task != "" {
		if _, err := forge.ParseTaskID(string(c.Attempt.Task)); err != nil {
			return "", err
		}
		task = string(c.Attempt.Task)
	}
	whom := "any"
	if group := g[c.To.Project]; group != "" && !ForAnyone(c.Attempt.Step) {
		if _, err := ParseGroup(string(group)); err != nil {
			return "", err
		}
		whom = "in." + string(group)
	}
	if c.Replica != "" {
		if _, err := forge.ParseReplicaID(string(c.Replica)); err != nil {
			return "", err
		}
		whom = "on." + string(c.Replica)
	}
	intent := string(c.To.Intent)
	if ofProject(c) {
		intent = projectMark + intent
	}
	return strings.Join([]string{
		"forge.command", string(c.Attempt.Step), whom, string(c.To.Project), intent,
		task, strconv.Itoa(c.Attempt.Number), strconv.Itoa(c.Attempt.Claim),
	}, "."), nil
}

// ParseCommand returns the command's fields that its subject holds.
func ParseCommand(s string) (c forge.Command, err error) {
	var groups Groups
	t := strings.Split(s, ".")
	switch {
	case len(t) == 9 && t[3] == "any":
		t = append(t[2:3:3], t[4:]...)
	case len(t) == 10 && t[3] == "on":
		if c.Replica, err = forge.ParseReplicaID(t[4]); err != nil {
			return c, err
		}
		t = append(t[2:3:3], t[5:]...)
	case len(t) == 10 && t[3] == "in":
		groups = Groups{forge.ProjectID(t[5]): Group(t[4])}
		t = append(t[2:3:3], t[5:]...)
	default:
		return c, fmt.Errorf("%q is no command's subject", s)
	}
	c.To = forge.Key{Project: forge.ProjectID(t[1]), Intent: forge.IntentID(strings.TrimPrefix(t[2], projectMark))}
	if t[3] != None {
		c.Attempt.Task = forge.TaskID(t[3])
	}
	if c.Attempt.Step, err = forge.ParseStep(t[0]); err != nil {
		return c, err
	}
	if c.Attempt.Number, err = strconv.Atoi(t[4]); err != nil {
		return c, err
	}
	if c.Attempt.Claim, err = strconv.Atoi(t[5]); err != nil {
		return c, err
	}
	if again, err := groups.Command(&c); err != nil || again != s {
		return c, fmt.Errorf("%q is no command's subject", s)
	}
	return c, nil
}

// CommandsOf matches every command that an intent issued.
func CommandsOf(k forge.Key) []string {
	return []string{
		fmt.Sprintf("forge.command.*.any.%s.%s.>", k.Project, k.Intent),
		fmt.Sprintf("forge.command.*.on.*.%s.%s.>", k.Project, k.Intent),
		fmt.Sprintf("forge.command.*.in.*.%s.%s.>", k.Project, k.Intent),
	}
}

// CommandsFor matches the commands of a step that a replica alone may take, or,
// if replica is empty, that any replica of a group may take.
func CommandsFor(step forge.Step, group Group, replica forge.ReplicaID) (string, error) {
	if _, err := forge.ParseStep(string(step)); err != nil {
		return "", err
	}
	switch {
	case replica != "":
	case group != "":
		_, err := ParseGroup(string(group))
		return "forge.command." + string(step) + ".in." + string(group) + ".>", err
	default:
		return "forge.command." + string(step) + ".any.>", nil
	}
	_, err := forge.ParseReplicaID(string(replica))
	return "forge.command." + string(step) + ".on." + string(replica) + ".>", err
}
