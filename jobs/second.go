package jobs

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
)

// second returns who makes the second review of a change, if that is what the command asks for: the
// project's second reviewer, by its file as it is now, or by the command where that names none any more. Where
// that one made the first review, because an intent names it or it stood in for another, it is the
// reviewer that the project has for the first. Nobody stands in for it: that could be who made the first.
func (j *Job) second() (who forge.Reviewer, asked bool, err error) {
	in := j.Command.Review()
	if in.Second == nil {
		return forge.Reviewer{}, false, nil
	}
	who = j.Config.SecondReviewer()
	if who.Agent == "" {
		who = *in.Second
	}
	if who == in.First {
		who = j.Config.FirstReviewer()
	}
	if who == in.First || who.Agent == config.AgentRecipe {
		return who, true, agent.Fail(forge.FailConfig, "%s made the first review, and there is nobody else for the second: "+
			"set review.second in %s to another agent or model, or name another agent in the intent", config.Named(in.First), config.FileName)
	}
	return who, true, nil
}
