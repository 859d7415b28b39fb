package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// queued is the part of a Client that has GitHub merge by itself: by the merge
// queue of a branch, which tries each change on those before it, or by auto-merge,
// which waits for the rules of the branch and nothing else. All of it is GraphQL's.
//
// Both are asked for a commit (expectedHeadOid). A push takes a pull request
// out of the queue, and leaves auto-merge on.
type queued struct{ c *Client }

// queueJSON is a pull request in the merge queue of its base, which REST has no word for.
type queueJSON struct {
	Repository struct {
		// Queue is null where the base has none, and Auto says whether the
		// repository has auto-merge.
		Queue *struct {
			ID string `json:"id"`
		} `json:"mergeQueue"` //nolint:tagliatelle // GraphQL's name
		Auto bool `json:"autoMergeAllowed"` //nolint:tagliatelle // GraphQL's name
		Pull struct {
			ID   string `json:"id"`
			Head string `json:"headRefOid"` //nolint:tagliatelle // GraphQL's name
			// Entry is null for one that is not queued, and Later for one without auto-merge.
			Entry *struct {
				Position int `json:"position"`
			} `json:"mergeQueueEntry"` //nolint:tagliatelle // GraphQL's name
			Later *struct {
				Enabled string `json:"enabledAt"` //nolint:tagliatelle // GraphQL's name
			} `json:"autoMergeRequest"` //nolint:tagliatelle // GraphQL's name
			Items struct {
				Nodes []removalJSON `json:"nodes"`
			} `json:"timelineItems"` //nolint:tagliatelle // GraphQL's name
		} `json:"pullRequest"` //nolint:tagliatelle // GraphQL's name
	} `json:"repository"`
}

// removalJSON is the last entry of a timeline about the queue or auto-merge:
// one that was put in, or taken out.
type removalJSON struct {
	Type   string `json:"__typename"` //nolint:tagliatelle // GraphQL's name
	ID     string `json:"id"`
	Reason string `json:"reason"`
	// Actor is a Bot by its login without [bot], which REST has.
	Actor *struct {
		Type  string `json:"__typename"` //nolint:tagliatelle // GraphQL's name
		Login string `json:"login"`
	} `json:"actor"`
	// Before is the commit that the queue tried.
	Before *struct {
		OID string `json:"oid"`
	} `json:"beforeCommit"` //nolint:tagliatelle // GraphQL's name
}

// The words of GitHub for a removal are in capitals in its hooks and in small
// letters here: failed_checks, merge_conflict, manual, and merge for one that
// it merged. An unknown one is told as it is.

// queueQuery asks for a pull request in the queue of its base.
const queueQuery = `query($owner: String!, $name: String!, $number: Int!, $base: String!) { repository(owner: $owner, name: $name) {
  autoMergeAllowed mergeQueue(branch: $base) { id }
  pullRequest(number: $number) { id headRefOid mergeQueueEntry { position } autoMergeRequest { enabledAt }
    timelineItems(last: 1, itemTypes: [ADDED_TO_MERGE_QUEUE_EVENT, REMOVED_FROM_MERGE_QUEUE_EVENT, AUTO_MERGE_ENABLED_EVENT, AUTO_MERGE_DISABLED_EVENT]) {
      nodes { __typename
        ... on RemovedFromMergeQueueEvent { id reason actor { __typename login } beforeCommit { oid } }
        ... on AutoMergeDisabledEvent { id reason actor { __typename login } } } } } } }`

// queue asks for a pull request in the queue of its base.
func (l queued) queue(ctx context.Context, repository string, number int64, base git.Branch) (*queueJSON, error) {
	if _, err := rest.Path(repository); err != nil {
		return nil, err
	}
	if _, err := git.ParseBranch(string(base)); err != nil {
		return nil, err
	}
	if _, err := l.c.Repository(ctx, repository); err != nil { // GraphQL follows a name to wherever it leads
		return nil, err
	}
	owner, name, _ := strings.Cut(repository, "/")
	j, err := graphQL[queueJSON](ctx, l.c, queueQuery, map[string]any{"owner": owner, "name": name, "number": number, "base": string(base)})
	if err == nil && j.Repository.Queue == nil && !j.Repository.Auto {
		err = fmt.Errorf("%w queue: turn on \"Require merge queue\" in the ruleset of %s, or \"Allow auto-merge\" in the repository's settings",
			forges.ErrMethod, base)
	}
	return &j, err
}

// Queue returns where a pull request stands in the merge queue of its base, or
// whether auto-merge is on where there is no queue.
func (l queued) Queue(ctx context.Context, repository string, number int64, base git.Branch) (q forges.Queue, err error) {
	j, err := l.queue(ctx, repository, number, base)
	if err != nil {
		return q, err
	}
	p := &j.Repository.Pull
	q.Tests, q.In = j.Repository.Queue != nil, p.Entry != nil || p.Later != nil
	if p.Entry != nil {
		q.Position = p.Entry.Position
	}
	if q.In {
		return q, nil
	}
	for _, e := range p.Items.Nodes {
		q.Out = e.removal()
	}
	return q, nil
}

// removal returns that a pull request was taken out; nil of an entry that says something else.
func (j *removalJSON) removal() *forges.Removal {
	reason := strings.ToLower(strings.ReplaceAll(j.Reason, "_", " "))
	if j.Type != "RemovedFromMergeQueueEvent" && j.Type != "AutoMergeDisabledEvent" || reason == "merge" || reason == "already merged" {
		return nil
	}
	r := &forges.Removal{ID: j.ID, Cause: forges.CauseOther, Reason: rest.Reason(reason)}
	if j.Actor != nil {
		if r.By = j.Actor.Login; j.Actor.Type == "Bot" {
			r.By += "[bot]"
		}
	}
	switch {
	case strings.Contains(reason, "conflict"):
		r.Cause = forges.CauseConflict
	case strings.HasPrefix(reason, "ci "), strings.Contains(reason, "checks"):
		r.Cause = forges.CauseChecks
		if j.Before != nil {
			if oid, err := git.ParseOID(j.Before.OID); err == nil {
				r.Commit = oid
			}
		}
	}
	return r
}

// Enqueue puts a pull request into the merge queue of its base, or turns auto-merge on where
// there is none. What may be merged at once GitHub does not auto-merge: then it is merged.
func (l queued) Enqueue(ctx context.Context, repository string, number int64, base git.Branch, head git.OID) error {
	if _, err := git.ParseOID(string(head)); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	j, err := l.queue(ctx, repository, number, base)
	if err != nil {
		return err
	}
	p := &j.Repository.Pull
	if p.Head != string(head) { // GitHub compares it once more
		return &forges.RefusedError{Code: http.StatusConflict, Reason: "its head is another commit"}
	}
	if p.Entry != nil || p.Later != nil {
		return nil
	}
	in := map[string]any{"id": p.ID, "head": string(head)}
	if j.Repository.Queue != nil { // whose commits have the words that the repository's settings say
		_, err = graphQL[struct{}](ctx, l.c, `mutation($id: ID!, $head: GitObjectID!) { enqueuePullRequest`+
			`(input: {pullRequestId: $id, expectedHeadOid: $head}) { clientMutationId } }`, in)
		return err
	}
	message, err := l.c.Message(ctx, repository, head)
	if err != nil {
		return err
	}
	in["title"], in["body"] = forges.MergeWords(message, fmt.Sprintf("#%d", number))
	_, err = graphQL[struct{}](ctx, l.c, `mutation($id: ID!, $head: GitObjectID!, $title: String!, $body: String!) { enablePullRequestAutoMerge`+
		`(input: {pullRequestId: $id, expectedHeadOid: $head, commitHeadline: $title, commitBody: $body}) { clientMutationId } }`, in)
	if err != nil && strings.Contains(err.Error(), "clean status") {
		return l.c.Merge(ctx, repository, number, head, forges.MergeCommit)
	}
	return err
}

// Dequeue takes a pull request out of the queue, and turns auto-merge off. That
// of one which is in neither is refused, and so changes nothing.
func (l queued) Dequeue(ctx context.Context, repository string, number int64) error {
	j, err := l.c.rawPull(ctx, repository, number)
	if err != nil {
		return err
	}
	q, err := l.queue(ctx, repository, number, git.Branch(j.Base.Ref))
	if err != nil {
		return err
	}
	p := &q.Repository.Pull
	if p.Entry != nil {
		_, err = graphQL[struct{}](ctx, l.c, `mutation($id: ID!) { dequeuePullRequest(input: {id: $id}) { clientMutationId } }`, map[string]any{"id": p.ID})
	}
	if p.Later != nil && err == nil {
		_, err = graphQL[struct{}](ctx, l.c, `mutation($id: ID!) { disablePullRequestAutoMerge(input: {pullRequestId: $id}) { clientMutationId } }`,
			map[string]any{"id": p.ID})
	}
	return err
}
