package access

import (
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Right is a group of subjects that an account needs for one reason.
type Right struct {
	// Why completes the sentence that begins with the account's role.
	Why string
	// Publish and Subscribe list the subjects that are allowed.
	Publish, Subscribe []string
	// Deny is not to be published although Publish matches it.
	Deny []string
}

// Rights returns everything that the account may do. all are the accounts of the
// installation, this one among them: a service answers in their inboxes.
func (a Account) Rights(all []Account) []Right {
	list := []Right{{Why: "receives the answers to its requests", Subscribe: []string{a.Inbox() + ".>"}}}
	switch a.Role {
	case Runner:
		return append(list, runner(all)...)
	case Auth:
		return append(list, auth()...)
	case Gateway:
		return append(list, gateway()...)
	case Backup:
		return append(list, backup()...)
	case Operator:
		return append(list, a.operator()...)
	case Submitter:
		return append(list, a.submitter()...)
	case Follower:
		return append(list, a.follower()...)
	case Implementer:
		list = append(list, worker(a.Role)...)
		return append(list, listsJournals, cleans(all))
	case Analyzer:
		list = append(list, worker(a.Role)...)
		return append(list, listsJournals)
	default:
		return append(list, worker(a.Role)...)
	}
}

// runner returns the rights of a runner, besides its inbox.
func runner(all []Account) []Right {
	var made, commands []string
	for _, cfg := range streams.All(1) {
		made = append(made, api("STREAM.CREATE", cfg.Name), api("STREAM.UPDATE", cfg.Name), api("STREAM.INFO", cfg.Name))
	}
	for _, step := range forge.Steps() {
		commands = append(commands, sharedConsumer(step), groupConsumers(step))
	}
	commands = append(commands, api("CONSUMER.CREATE", streams.Commands, "*.forge.command.*.held.*.>"), api("CONSUMER.INFO", streams.Commands, "*"))
	var inboxes []string
	for _, other := range all {
		if other.Role != Follower && other.Role != Auth && other.Role != Backup {
			inboxes = append(inboxes, Inbox(other.Name)+".>")
		}
	}
	inboxes = append(inboxes, LoginInbox(">"))
	return []Right{
		{Why: "makes the streams", Publish: append(made, "$JS.API.STREAM.NAMES")},
		{Why: "makes streams in memory anew that have no leader", Publish: []string{
			api("STREAM.DELETE", streams.Commands), api("STREAM.DELETE", streams.Wakes), "forge.epoch.*",
		}},
		{Why: "makes the consumers that the replicas of a worker share, in each group, and those that count what waits for its turn", Publish: commands},
		{Why: "takes what people and systems ask for, timers, and events between machines", Publish: slices.Concat(
			consumes(streams.Intents, "runner"), consumes(streams.Wakes, "runner"),
			[]string{api("CONSUMER.CREATE", streams.Intents, "runner.forge.intent.>"), api("CONSUMER.CREATE", streams.Wakes, "runner.forge.wake.>")},
		)},
		{Why: "takes the results of workers", Subscribe: []string{subjects.EveryResult}},
		{Why: "answers workers, people, systems, and itself where it stores a submission", Publish: inboxes},
		{Why: "journals decisions, and reads them", Publish: []string{
			subjects.EveryJournal, subjects.EveryProject,
			api("STREAM.MSG.GET", streams.Journal), api("DIRECT.GET", streams.Journal),
			api("STREAM.MSG.GET", streams.Projects), api("DIRECT.GET", streams.Projects),
		}},
		{Why: "keeps the states of projects, and begins with them", Publish: append(
			stores(streams.BucketSnapshots), api("DIRECT.GET", streams.BucketSnapshots.Stream()),
		)},
		{Why: "issues commands, timers and events between machines, and takes them back", Publish: []string{
			"forge.command.>", "forge.wake.>", "forge.timer.*.*.*", "forge.control.*.*",
			api("STREAM.PURGE", streams.Commands), api("STREAM.PURGE", streams.Wakes),
			api("STREAM.MSG.GET", streams.Commands), api("STREAM.MSG.GET", streams.Wakes),
		}},
		{Why: "publishes changes and refusals, and follows the former to notify people", Publish: append(
			[]string{
				"forge.event.*.*.*", "forge.refusal.*.*", api("STREAM.MSG.GET", streams.Events), api("CONSUMER.CREATE", streams.Events, ">"),
			}, consumes(streams.Events, "*")...,
		)},
		{
			Why:     "serves requests of people and systems, and stores what these submit",
			Publish: []string{"forge.intent.*.submit"},
			Subscribe: append([]string{
				subjects.APISubmit, subjects.APISubmitFrom, subjects.APIListBy, subjects.APIListFrom, subjects.APIShowBy, subjects.APIShowFrom,
				subjects.APIDiffBy, subjects.APIDiffFrom, subjects.APITranscriptBy, subjects.APITranscriptFrom,
				subjects.APITimelineBy, subjects.APITimelineFrom, subjects.APIAuditBy, subjects.APIAuditFrom,
				subjects.APICostsBy, subjects.APICostsFrom, subjects.APISettingsBy, subjects.APISettingsFrom,
				subjects.APIQueueBy, subjects.APIQueueFrom,
				subjects.APIHealthBy, subjects.APIHealthFrom, subjects.APIWholeBy, subjects.APIWholeFrom, subjects.APIServicesBy, subjects.APIServicesFrom,
			}, microService("pfl-forge")...),
		},
		{
			Why: "reads for people what is of their projects, and learns when there is more",
			Publish: slices.Concat(reads(streams.Transcripts), reads(streams.BucketTranscripts.Stream()), []string{
				api("DIRECT.GET", streams.Transcripts), api("DIRECT.GET", streams.BucketTranscripts.Stream()),
				api("STREAM.MSG.GET", streams.Intents), // the wakes' is above
			}),
			Subscribe: append([]string{
				subjects.APIRead, subjects.EveryJournal, subjects.EveryProject, subjects.EveryTranscript, subjects.EveryDead,
			}, microService("pfl-forge-read")...),
		},
		{
			Why:       "asks which services run, and says that it does",
			Publish:   []string{"$SRV.INFO", PresenceInbox() + ".*"},
			Subscribe: append([]string{PresenceInbox() + ".*"}, microService("pfl-forge-runner")...),
		},
		{Why: "puts aside what cannot be handled", Publish: []string{subjects.EveryDead}},
		{Why: "counts for metrics which commands wait, and the dead letters", Publish: []string{
			api("CONSUMER.LIST", streams.Commands), api("DIRECT.GET", streams.Dead),
		}},
	}
}

// worker returns the rights that the workers of a service have, besides their inbox.
func worker(role Role) []Right {
	var commands, others, results []string
	for _, step := range forge.Steps() {
		name := string(step)
		if step.Service() != string(role) {
			others = append(others,
				api("CONSUMER.CREATE", streams.Commands, name+".>"), api("CONSUMER.MSG.NEXT", streams.Commands, name),
				"$JS.ACK."+streams.Commands+"."+name+".>", "$JS.ACK.*.*."+streams.Commands+"."+name+".>")
			continue
		}
		commands = append(commands, sharedConsumer(step), groupConsumers(step), api("CONSUMER.CREATE", streams.Commands, "*.forge.command."+name+".on.*.>"))
		results = append(results, "forge.result."+name+".*.*", "forge.lease."+name+".*.*.*", "forge.transcript.*.*.*."+name+".*.*")
	}
	return []Right{
		{
			Why: "takes commands of its steps; consumers of single replicas and of groups have no name that tells services apart",
			Publish: slices.Concat(commands, consumes(streams.Commands, "*"), []string{
				api("STREAM.INFO", streams.Commands), api("STREAM.MSG.GET", streams.Commands),
			}),
			Deny: others,
		},
		{Why: "reports results, leases and transcripts of its steps", Publish: results},
		{Why: "shows its progress, and puts aside what it cannot read", Publish: []string{"forge.progress.*.*", "forge.dead.commands.*"}},
		{Why: "asks whether a command is still wanted, and for traces of which run it is", Publish: []string{
			api("STREAM.MSG.GET", streams.Journal), api("STREAM.MSG.GET", streams.Projects),
		}},
		{Why: "reads leases", Publish: reads(streams.Leases)},
		{
			Why: "reads transcripts, and stores them as a whole, as well as changes and the sessions of agents",
			Publish: slices.Concat(
				[]string{api("STREAM.MSG.GET", streams.Transcripts)},
				stores(streams.BucketObjects), stores(streams.BucketTranscripts),
			),
		},
		{Why: "learns which commands are not needed any more", Subscribe: []string{"forge.control.*.*", subjects.EveryCleaned}},
		{
			Why:       "says that it runs",
			Publish:   []string{PresenceInbox() + ".*"},
			Subscribe: microService("pfl-forge-" + string(role)),
		},
	}
}

// listsJournals is needed by workers that look at all intents of a project.
var listsJournals = Right{Why: "lists the intents of a project", Publish: []string{
	api("STREAM.INFO", streams.Journal), "forge.dead.journal.*", "forge.dead.projects.*",
}}

// cleans returns the right of an implementer to clean for people.
func cleans(all []Account) Right {
	r := Right{
		Why: "cleans for people, and tells the others", Publish: []string{"forge.cleaned.*"},
		Subscribe: append([]string{subjects.APIClean}, microService("pfl-forge-clean")...),
	}
	for _, other := range all {
		if other.Role == Operator {
			r.Publish = append(r.Publish, Inbox(other.Name)+".>")
		}
	}
	r.Publish = append(r.Publish, LoginInbox(">"))
	return r
}

// auth returns the rights of the service that lets in people and services by their
// tokens, besides its inbox.
func auth() []Right {
	return []Right{
		{
			Why:     "is asked by the server whom to let in, and answers it alone",
			Publish: []string{"$SYS._INBOX.>"}, Subscribe: []string{subjects.ServerAsks},
		},
		{
			Why:     "certifies the keys of people who log in",
			Publish: []string{LoginInbox(">")}, Subscribe: []string{subjects.EveryCertify},
		},
	}
}

// throughGateway lists the verbs that a gateway may hand on for people. It is spelled out,
// so that a verb that comes later is not taken in.
var throughGateway = []string{"submit", "edit", "approve", "request_changes", "reject", "answer", "retry", "cancel", "pause", "resume"}

// gateway returns the rights of the service that speaks HTTP to the outside, besides its
// inbox. It asks for nothing in its own name: each subject that it publishes on names the
// person or system, and the gateway as the way. It makes no consumer: who may make one can
// have it deliver anywhere. From those that a runner makes for its own two steps it takes
// commands; of other commands, objects, sessions and transcripts it reads and stores nothing.
func gateway() []Right {
	name := string(Gateway)
	asks := []string{"forge.intent.*.from.*.via." + name + ".submit"}
	for _, verb := range throughGateway {
		asks = append(asks, "forge.intent.*.by.*.via."+name+"."+verb)
	}
	var looks []string
	for _, verb := range []string{
		subjects.VerbList, subjects.VerbShow, subjects.VerbDiff, subjects.VerbTranscript, subjects.VerbTimeline, subjects.VerbAudit,
		subjects.VerbCosts, subjects.VerbSettings, subjects.VerbQueue, subjects.VerbHealth, subjects.VerbWhole, subjects.VerbServices,
	} {
		looks = append(looks, "forge.api.*.from."+name+"."+verb)
	}
	var takes, reports []string
	for _, step := range forge.Steps() {
		if step.Service() == name {
			takes = append(takes, consumes(streams.Commands, string(step))...)
			reports = append(reports, "forge.result."+string(step)+".*.*", "forge.lease."+string(step)+".*.*.*", "forge.transcript.*.*.*."+string(step)+".*.*")
		}
	}
	return []Right{
		{Why: "takes commands of its steps, which are for any gateway", Publish: takes},
		{Why: "reports results, leases and transcripts of its steps", Publish: reports},
		{Why: "shows its progress, and puts aside what it cannot read", Publish: []string{"forge.progress.*.*", "forge.dead.commands.*", "forge.dead.hooks.*"}},
		{Why: "asks whether a command is still wanted, and for traces of which run it is", Publish: []string{
			api("STREAM.MSG.GET", streams.Journal), api("STREAM.MSG.GET", streams.Projects),
		}},
		{Why: "reads leases", Publish: reads(streams.Leases)},
		{Why: "is the one that watches a forge", Publish: []string{subjects.EveryWatch}},
		{Why: "learns which commands are not needed any more", Subscribe: []string{"forge.control.*.*", subjects.EveryCleaned}},
		{Why: "hands on what people and systems ask for, each of whom it names", Publish: asks},
		{Why: "asks a runner for what there is to see", Publish: looks},
		{Why: "reads changes, and learns when there are more", Publish: []string{
			api("STREAM.MSG.GET", streams.Events), api("STREAM.INFO", streams.Events),
		}, Subscribe: []string{"forge.event.*.*.*"}},
		{Why: "stores what comes through hooks, and reads it", Publish: []string{subjects.EveryDelivery, api("STREAM.MSG.GET", streams.Hooks)}, Subscribe: []string{
			subjects.EveryDelivery,
		}},
		{Why: "stores what its rules of intake let in, and counts it for their limits", Publish: []string{
			subjects.EveryIntake, api("STREAM.MSG.GET", streams.Intake),
		}},
		{Why: "says that it runs", Publish: []string{PresenceInbox() + ".*"}, Subscribe: microService("pfl-forge-" + name)},
	}
}

// backup returns the rights of who copies and restores all streams, besides its inbox.
func backup() []Right {
	var looks, copies, restores []string
	for _, cfg := range streams.All(1) {
		looks = append(looks, api("STREAM.INFO", cfg.Name))
	}
	for _, name := range streams.Copied() {
		copies = append(copies, api("STREAM.SNAPSHOT", name), "$JS.SNAPSHOT.ACK."+name+".>")
		restores = append(restores, api("STREAM.RESTORE", name), "$JS.SNAPSHOT.RESTORE."+name+".*")
	}
	return []Right{
		{Why: "copies what is kept on disk", Publish: copies},
		{Why: "looks whether a server is empty", Publish: looks},
		{Why: "puts streams into an empty server", Publish: restores},
		{Why: "reads all journals after that, and leaves out what projects decided later than their intents were copied", Publish: []string{
			api("STREAM.MSG.GET", streams.Journal), api("STREAM.MSG.GET", streams.Projects), api("STREAM.MSG.DELETE", streams.Projects),
		}},
	}
}

// Login returns the rights of a person who has shown a token and is about to have
// the key of a login certified, whose public part key is. The subject names that
// key, so a connection has no other one certified.
func Login(key string) []Right {
	return []Right{{
		Why: "has the key of a login certified", Publish: []string{subjects.Certify(key)}, Subscribe: []string{LoginInbox(key) + ".>"},
	}}
}

// operator returns the rights of a person with the command line. There is none on
// JetStream: what a stream holds is of all projects, and its answers go to whatever
// subject the asker names. So a runner reads for people, and a right to read is one
// on a request with project and name in it. Each project is listed with each verb,
// because a wildcard would take in verbs that come later.
func (a Account) operator() []Right {
	var asks, reads, cleans, progress []string
	for _, p := range a.projects() {
		own := p + ".by." + a.token() + "."
		asks = append(asks, "forge.intent."+own+"*")
		for _, verb := range []string{
			subjects.VerbRead, subjects.VerbList, subjects.VerbShow, subjects.VerbDiff, subjects.VerbTranscript, subjects.VerbTimeline, subjects.VerbAudit,
			subjects.VerbCosts, subjects.VerbSettings, subjects.VerbQueue, subjects.VerbHealth, subjects.VerbWhole, subjects.VerbServices,
		} {
			reads = append(reads, "forge.api."+own+verb)
		}
		cleans = append(cleans, "forge.api."+own+subjects.VerbClean)
		progress = append(progress, "forge.progress."+p+".*")
	}
	list := []Right{
		{Why: "asks and decides under one name", Publish: asks},
		{Why: "asks a runner for what there is to read, project by project", Publish: reads},
		{Why: "watches progress", Subscribe: progress},
	}
	if !a.NoClean {
		list = append(list, Right{Why: "has removed what intents left", Publish: cleans})
	}
	return list
}

// submitter returns the right of another system to ask for changes.
func (a Account) submitter() []Right {
	r := Right{Why: "asks for changes under one name"}
	for _, p := range a.projects() {
		r.Publish = append(r.Publish, "forge.intent."+p+".from."+a.token()+".submit", "forge.api."+p+".from."+a.token()+".submit")
	}
	return []Right{r}
}

// follower returns the right of another system to follow changes.
func (a Account) follower() []Right {
	return []Right{{Why: "takes changes from the consumer of its name", Publish: consumes(streams.Events, a.Name)}}
}

// projects returns the tokens of the projects that the account may speak about.
func (a Account) projects() []string {
	if len(a.Projects) == 0 {
		return []string{"*"}
	}
	list := make([]string, len(a.Projects))
	for i, p := range a.Projects {
		list[i] = string(p)
	}
	return list
}

// token returns the account's name as a token of a subject, which it is: see
// NewAccount.
func (a Account) token() string { return a.Name }
