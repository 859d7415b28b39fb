package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// answers says to those who asked for changes, each in the thread of their remark, that the change
// was made again for it. The rules name the remarks that an agent was given; no other is answered.
// The words are ours alone: what became of a remark its author finds out, and resolves the thread.
//
// An answer is a courtesy. A thread that is gone, or in which we may say
// nothing, holds no change up.
type answers struct{ *Keeper }

const (
	// answerBegin begins the mark of an answer, by which it is known that a
	// remark has one, whichever gateway wrote it.
	answerBegin = "<!-- pfl-forge answer "
	// maxRemark bounds the words of a remark that a comment repeats, in bytes.
	maxRemark = 300
)

// answerMark returns the mark of the answer to a remark.
func answerMark(a forge.PullRemark) string {
	return fmt.Sprintf("%s%d %s%s", answerBegin, a.Thread, a.Digest, markEnd)
}

// write answers the remarks of a request that have no answer. Where the forge has no way to answer
// in a thread, one comment on the pull request answers them all, and repeats what each was about.
func (k answers) write(ctx context.Context, r *ask, number int64, in *forge.PullInput) error {
	if len(in.Answers) == 0 {
		return nil
	}
	list, err := k.cfg.Forge.Reviews(ctx, r.repository, number)
	if err != nil {
		return part("reviews", err)
	}
	var apart []remark
	var topics []string
	for _, a := range slices.Backward(in.Answers) { // of several remarks in one thread the last one is answered
		t := k.thread(list, a)
		switch {
		case t == nil:
			k.cfg.Log.InfoContext(ctx, "a remark is gone before its answer", "forge", k.cfg.Name, "repository", r.repository, "number", number, "remark", a.Thread)
			continue
		case t.Topic == "":
			apart = append(apart, remark{t, a})
			continue
		case slices.Contains(topics, t.Topic):
			continue
		}
		topics = append(topics, t.Topic)
		if k.isSaid(t.Replies, a) {
			continue
		}
		err := k.cfg.Forge.Answer(ctx, r.repository, number, t.Topic, answerMark(a)+answer(a, in))
		if err := k.failedToSay(ctx, r, number, err); err != nil {
			return err
		}
	}
	slices.Reverse(apart)
	return k.writeApart(ctx, r, number, in, apart)
}

// late takes that the pull request of a request cannot be brought up to date any more. Where a
// person merged the very commit that the remarks are answered by, their threads are still
// waited for, and forges take an answer after a merge. Everything else that it may be at would
// make an answer untrue: it is left out, which the log has with the numbers of the remarks.
func (k answers) late(ctx context.Context, r *ask, p *forges.Pull, in *forge.PullInput) error {
	if p.State == forges.Merged && p.Head == r.head {
		return k.write(ctx, r, p.Number, in)
	}
	for _, a := range in.Answers {
		k.cfg.Log.WarnContext(ctx, "a remark has no answer: the pull request is not at the commit that answers it", "forge", k.cfg.Name,
			"repository", r.repository, "number", p.Number, "remark", a.Thread, "state", string(p.State), "at", string(p.Head), "answer", string(r.head))
	}
	return nil
}

// remark is a remark with the request for its answer.
type remark struct {
	*forges.Thread

	asked forge.PullRemark
}

// thread returns the thread of a remark that is to be answered, if its words are those that
// were handed on and a person wrote them whom the file of tokens knows; otherwise nil.
func (k answers) thread(list []forges.Review, a forge.PullRemark) *forges.Thread {
	for i := range list {
		r := &list[i]
		if k.cfg.person(r.Author.ID) == nil || r.Author.ID == k.self.ID {
			continue
		}
		for j := range r.Threads {
			if t := &r.Threads[j]; remarkOf(t) == (forge.PullRemark{Thread: a.Thread, Digest: a.Digest}) {
				return t
			}
		}
	}
	return nil
}

// isSaid reports whether one of the comments is our answer to a remark. Others
// can write a mark like ours.
func (k answers) isSaid(list []forges.Comment, a forge.PullRemark) bool {
	mark := strings.TrimSpace(answerMark(a))
	return slices.ContainsFunc(list, func(c forges.Comment) bool {
		return c.Author.ID == k.self.ID && slices.Contains(strings.Split(lineEnds.Replace(c.Body), "\n"), mark)
	})
}

// answer returns the line of an answer. What an agent says of its work decides
// nothing, and is not repeated as if it were ours.
func answer(a forge.PullRemark, in *forge.PullInput) string {
	if !a.Changed {
		return fmt.Sprintf("Not changed: the attempt for this led to the same change, `%s`.", commit(in.Head))
	}
	return fmt.Sprintf("Reworked in `%s`, which was verified and reviewed again. Whether that is what you meant, you say: resolve this, or ask again.",
		commit(in.Head))
}

// writeApart writes the one comment on a pull request that answers remarks,
// unless they have their answers.
func (k answers) writeApart(ctx context.Context, r *ask, number int64, in *forge.PullInput, open []remark) error {
	if len(open) == 0 {
		return nil
	}
	said, err := k.cfg.Forge.Comments(ctx, r.repository, forges.OfPull(number), time.Time{})
	if err != nil {
		return part("comments", err)
	}
	open = slices.DeleteFunc(open, func(m remark) bool { return k.isSaid(said, m.asked) })
	if len(open) == 0 {
		return nil
	}
	var marks, b strings.Builder
	for _, m := range open {
		marks.WriteString(answerMark(m.asked))
	}
	list(&b, open, func(m remark) string {
		return fmt.Sprintf("%s\n\n%s\n%s\n\n", k.item(fmt.Sprintf("%s:%d", m.Path, m.Line)), intake.Quote(m.Body, k.cfg.Secrets, maxRemark), answer(m.asked, in))
	})
	_, err = k.cfg.Forge.Say(ctx, r.repository, forges.OfPull(number), marks.String()+strings.TrimSpace(b.String()))
	return k.failedToSay(ctx, r, number, err)
}

// failedToSay returns the error of an answer if the same request may succeed
// later, and tells the log of any other one.
func (k answers) failedToSay(ctx context.Context, r *ask, number int64, err error) error {
	_, parked := errors.AsType[*forges.ParkedError](err)
	if err == nil || parked || ctx.Err() != nil {
		return err
	}
	k.cfg.Log.WarnContext(ctx, "a remark has no answer", "forge", k.cfg.Name, "repository", r.repository, "number", number, "error", err)
	return nil
}
