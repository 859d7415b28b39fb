package subjects

import (
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// A command that waits for its turn is held on
//
//	forge.command.<step>.held.<line>.<project>.<intent>.<task>.<number>.<claim>[.<replica>]
//
// which no worker takes from. The line is any for projects without a group, and
// in-<group> for the others. The replica comes last, if there is one, so that
// one pattern has all that a project waits with in a line.

// Line is a queue at the workers in front of which commands wait for their
// turn: that of a step outside of all groups, or in one.
type Line struct {
	Step  forge.Step
	Group Group
}

// EveryHeld matches every command that waits for its turn.
const EveryHeld = "forge.command.*.held.>"

// token is the line's in subjects.
func (l Line) token() string {
	if l.Group == "" {
		return "any"
	}
	return "in-" + string(l.Group)
}

// Held matches the commands that wait in the line.
func (l Line) Held() string { return "forge.command." + string(l.Step) + ".held." + l.token() + ".>" }

// HeldOf matches those of one project.
func (l Line) HeldOf(project forge.ProjectID) string {
	return "forge.command." + string(l.Step) + ".held." + l.token() + "." + string(project) + ".>"
}

// HeldOn matches those of one project that are for one replica.
func (l Line) HeldOn(project forge.ProjectID) string {
	return strings.TrimSuffix(l.HeldOf(project), ">") + "*.*.*.*.*"
}

// Consumer is the name of the consumer that the workers of the line share.
func (l Line) Consumer() string {
	if l.Group == "" {
		return string(l.Step)
	}
	return string(l.Step) + "-in-" + string(l.Group)
}

// Counter is the name of the consumer from which no one takes, and which counts
// the commands that wait in the line. No other consumer is called so: in the
// names of others, "in" or "on" comes after the step.
func (l Line) Counter() string {
	if l.Group == "" {
		return string(l.Step) + "-held"
	}
	return string(l.Step) + "-held-in-" + string(l.Group)
}

// HeldOfIntent matches the commands of an intent that wait for their turn.
func HeldOfIntent(k forge.Key) string {
	return fmt.Sprintf("forge.command.*.held.*.%s.%s.>", k.Project, k.Intent)
}

// HeldAttempt matches the command of an attempt of an intent that waits for its
// turn: the first for any replica, the second for one.
func HeldAttempt(k forge.Key, a forge.Attempt) [2]string {
	task := None
	if a.Task != "" {
		task = string(a.Task)
	}
	all := fmt.Sprintf("forge.command.%s.held.*.%s.%s.%s.%d.%d", a.Step, k.Project, k.Intent, task, a.Number, a.Claim)
	return [2]string{all, all + ".*"}
}

// Addressed matches the command of an attempt of an intent that is for one replica, whichever
// that is. Errors: those of Command, so that an attempt that a worker names matches no other.
func Addressed(k forge.Key, a forge.Attempt) (string, error) {
	s, err := Groups{}.Command(&forge.Command{To: k, Attempt: a})
	step := "forge.command." + string(a.Step)
	return step + ".on.*" + strings.TrimPrefix(s, step+".any"), err
}

// AtWorkers matches the commands of a project that workers may take or have taken.
func AtWorkers(project forge.ProjectID) []string {
	return []string{
		fmt.Sprintf("forge.command.*.any.%s.>", project),
		fmt.Sprintf("forge.command.*.on.*.%s.>", project),
		fmt.Sprintf("forge.command.*.in.*.%s.>", project),
	}
}

// EveryAtWorkers matches those of all projects.
func EveryAtWorkers() []string {
	return []string{"forge.command.*.any.>", "forge.command.*.on.>", "forge.command.*.in.>"}
}

// Turn is the subject of the mark of whoever gives the turns of a project now.
func Turn(project forge.ProjectID) string { return "forge.command.turn." + string(project) }

// LineOf is the line of a command's project.
func (g Groups) LineOf(c *forge.Command) Line { return Line{c.Attempt.Step, g[c.To.Project]} }

// Hold is the subject on which a command waits for its turn. Errors: those of Command.
func (g Groups) Hold(c *forge.Command) (string, error) {
	free := *c
	free.Replica = ""
	s, err := Groups{}.Command(&free)
	if err != nil {
		return "", err
	}
	l := g.LineOf(c)
	if l.Group != "" {
		if _, err := ParseGroup(string(l.Group)); err != nil {
			return "", err
		}
	}
	step := "forge.command." + string(l.Step)
	s = step + ".held." + l.token() + strings.TrimPrefix(s, step+".any")
	if c.Replica != "" {
		if _, err := forge.ParseReplicaID(string(c.Replica)); err != nil {
			return "", err
		}
		s += "." + string(c.Replica)
	}
	return s, nil
}

// ParseHeld returns the line in which a command waits for its turn, and the
// fields that its subject holds.
func ParseHeld(s string) (l Line, c forge.Command, err error) {
	refused := fmt.Errorf("%q is no subject of a command that waits for its turn", s)
	t := strings.Split(s, ".")
	if len(t) < 10 || len(t) > 11 || t[3] != "held" {
		return Line{}, c, refused
	}
	ready := append([]string{t[0], t[1], t[2], "any"}, t[5:10]...)
	if c, err = ParseCommand(strings.Join(ready, ".")); err != nil {
		return Line{}, c, err
	}
	if len(t) == 11 {
		c.Replica = forge.ReplicaID(t[10])
	}
	groups := Groups{}
	if group, grouped := strings.CutPrefix(t[4], "in-"); grouped {
		groups[c.To.Project] = Group(group)
	}
	if again, err := groups.Hold(&c); err != nil || again != s {
		return Line{}, forge.Command{}, refused
	}
	return groups.LineOf(&c), c, nil
}
