package telemetry

import "github.com/pfl-forge/pfl-forge"

// The addresses below which the gateway has those of intents, and of what people want of one.
const (
	intentRoute = "/api/v1/projects/{project}/intent"
	wishRoute   = intentRoute + "s/{intent}/"
	// consoleIntent is where the console has the page of an intent.
	consoleIntent = "/console/projects/{project}/intents/{intent}"
)

// These are all constants of their types (TestValuesAreComplete).
var (
	statuses = []forge.Status{
		forge.StatusProposed, forge.StatusApproved, forge.StatusExecuting, forge.StatusDone, forge.StatusBlocked, forge.StatusError,
		forge.StatusRejected, forge.StatusCancelled,
	}
	waitings = []forge.Waiting{
		forge.WaitingApproval, forge.WaitingClarification, forge.WaitingFailed, forge.WaitingDirty, forge.WaitingBase,
		forge.WaitingBudget, forge.WaitingPull, forge.WaitingPaused,
	}
	losses = []PodLoss{
		PodNotStarted, PodEvicted, PodOutOfMemory, PodPreempted, PodDeadline, PodNode, PodDeleted, PodConnection,
	}
	// projectFacts are the reasons for which a project has an entry in ProjectSummary.Closed. A
	// reason that is not among them is not shown, since an attribute has a closed set of values.
	projectFacts = []forge.FailureReason{forge.FailAuth, forge.FailQuota, forge.FailOrigin, forge.FailPush, forge.FailBase}
	refusals     = []PodRefusal{PodDenied, PodQuota, PodTemplate}
	// httpRoutes are those of the gateway; its TestRequestsAreMeasured compares
	// them with what it serves.
	httpRoutes = []string{
		intentRoute + "s", intentRoute + "s/{intent}", "/api/v1/projects/{project}/events", "/api/v1/projects/{project}/audit",
		"/api/v1/projects/{project}/costs", "/api/v1/projects/{project}/settings",
		"/api/v1/projects/{project}/whole", "/api/v1/projects/{project}/queue", "/api/v1/projects/{project}/health", "/hooks/{name}",
		wishRoute + "edit", wishRoute + "answer", wishRoute + "approve", wishRoute + "request_changes", wishRoute + "reject", wishRoute + "retry",
		wishRoute + "cancel",
		wishRoute + "pause", wishRoute + "resume", wishRoute + "diff", wishRoute + "transcript", wishRoute + "timeline", wishRoute + "whole",
		"/console/", "/console/{$}", "/console/sign-in", "/console/log-in", "/console/logged-in", "/console/sign-out",
		"/console/static/{stamp}/{file}", "/console/inbox", "/console/inbox/approve", "/console/board",
		"/console/costs", "/console/costs/export", "/console/audit", "/console/audit/export", "/console/settings",
		"/console/health", "/console/health/export",
		"/console/projects/{project}/events",
		consoleIntent, consoleIntent + "/transcript", consoleIntent + "/timeline", consoleIntent + "/records", consoleIntent + "/decide",
	}
	httpStatuses = []string{
		"200", "201", "202", "204", "303", "304", "400", "401", "403", "404", "405", "408", "409", "413", "415", "422", "429", "500", "503", "504",
	}
	reasons = []forge.FailureReason{
		forge.FailTimeout, forge.FailIdle, forge.FailOutputLimit, forge.FailDiskLimit, forge.FailCrashed, forge.FailInvalidOutput, forge.FailAuth,
		forge.FailRateLimited, forge.FailQuota, forge.FailOverloaded, forge.FailRefused, forge.FailMaxTurns, forge.FailBudget,
		forge.FailLostSession, forge.FailMissingCLI, forge.FailCLITooOld, forge.FailSandbox, forge.FailPromptTooLong, forge.FailKilled,
		forge.FailInterrupted, forge.FailUnsafe, forge.FailConfig, forge.FailRepository, forge.FailLost, forge.FailHeld, forge.FailOrigin,
		forge.FailPush, forge.FailBase, forge.FailReplica, forge.FailUnwell, forge.FailKilledReplica, forge.FailUnreserved,
	}
)
