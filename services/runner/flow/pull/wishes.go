package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Remark is a remark that the change was made again for.
type Remark struct {
	forge.PullRemark

	Account string
	// Patch identifies the change that it was about.
	Patch string
}

// Wish identifies a review that asks for changes: by whom, of which commit, and
// a digest of the words.
type Wish struct{ Account, Commit, Digest string }

// wishOf returns the name of a review's wish.
func wishOf(r *forge.PullReview) Wish {
	sum := sha256.Sum256([]byte(r.Text))
	return Wish{Account: r.Account, Commit: r.Commit, Digest: hex.EncodeToString(sum[:8])}
}

// isTakenUp reports whether the change was made again for a review: for all of
// its remarks, or for its words where none are named, as before gateways did.
func (o *Ours) isTakenUp(r *forge.PullReview) bool {
	if slices.Contains(o.TakenUp, wishOf(r)) {
		return true
	}
	return len(r.Remarks) > 0 && !slices.ContainsFunc(r.Remarks, func(m forge.PullRemark) bool { return !o.hasTakenUp(r.Account, m) })
}

// hasTakenUp reports whether the change was made again for a remark.
func (o *Ours) hasTakenUp(account string, m forge.PullRemark) bool {
	return slices.ContainsFunc(o.Remarks, func(r Remark) bool { return r.Account == account && r.PullRemark == m })
}

// TakeUp keeps that the change is made again for all that a look shows to be asked
// for.
func (o *Ours) TakeUp(seen *forge.PullRequest) {
	for _, r := range o.Wishes(seen) {
		o.TakenUp = keep(append(slices.Clip(o.TakenUp), wishOf(&r)), maxKept)
		for _, m := range r.Remarks {
			if o.hasTakenUp(r.Account, m) {
				continue
			}
			made := Remark{PullRemark: m, Account: r.Account, Patch: o.Patch}
			o.Remarks = keep(append(slices.Clip(o.Remarks), made), maxRemarks)
			if m.Thread != 0 {
				o.Unanswered = keep(append(slices.Clip(o.Unanswered), made), maxRemarks)
			}
		}
	}
}

// Answers returns the remarks that are to be answered at the forge, now that the
// change was made again for them.
func (o *Ours) Answers() (list []forge.PullRemark) {
	for _, r := range o.Unanswered {
		list = append(list, forge.PullRemark{Thread: r.Thread, Digest: r.Digest, Changed: r.Patch != o.Patch})
	}
	return list
}

// sameReview reports whether two reviews say the same.
func sameReview(a, b forge.PullReview) bool {
	return a.Person == b.Person && a.Account == b.Account && a.May == b.May && a.Verdict == b.Verdict && a.Commit == b.Commit && a.Text == b.Text &&
		slices.Equal(a.Remarks, b.Remarks)
}

// Wishes returns the reviews by which people who may ask for changes, of
// whatever commit, and that were not heard yet.
func (o *Ours) Wishes(seen *forge.PullRequest) (list []forge.PullReview) {
	for i := range seen.Reviews {
		r := &seen.Reviews[i]
		if r.May && r.Person != "" && r.Verdict == forge.PullChangesRequested && !o.isTakenUp(r) {
			list = append(list, *r)
		}
	}
	return list
}
