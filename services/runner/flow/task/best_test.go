package task_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// TestChoose goes through what tells two changes apart, the most important first.
func TestChoose(t *testing.T) {
	plain := task.Trial{Reached: task.Accepted, Met: 2, Files: 3}
	with := func(change func(*task.Trial)) task.Trial {
		other := plain
		change(&other)
		return other
	}
	for _, tc := range []struct {
		name          string
		first, second task.Trial
		two           bool
		why           string
	}{
		{"alike", plain, plain, false, "nothing tells them apart, so the first"},
		{
			"only the second is approved", with(func(c *task.Trial) { c.Reached = task.Refused }), plain, true,
			"the first is rejected, the second is approved",
		},
		{
			"only the first is approved", plain, with(func(c *task.Trial) { c.Reached = task.Unverified }), false,
			"the first is approved, the second does not verify",
		},
		{
			"an approval counts more than size", plain, with(func(c *task.Trial) { c.Reached, c.Files = task.Refused, 1 }), false,
			"the first is approved, the second is rejected",
		},
		{
			"verified counts more than requirements",
			task.Trial{Reached: task.Unverified},
			task.Trial{Reached: task.Refused},
			true, "the first does not verify, the second is rejected",
		},
		{
			"a change counts more than none",
			task.Trial{Reached: task.Nowhere},
			task.Trial{Reached: task.Unverified},
			true,
			"the first changes nothing, the second does not verify",
		},
		{
			"what cannot go on is never chosen",
			task.Trial{Reached: task.Nowhere},
			task.Trial{Reached: task.Out},
			false,
			"the first changes nothing, the second cannot go on",
		},
		{
			"of two rejected ones the one that meets more",
			task.Trial{Reached: task.Refused, Met: 1, Files: 1},
			task.Trial{Reached: task.Refused, Met: 2, Files: 9},
			true,
			"of the requirements the first meets 1, the second 2",
		},
		{
			"fewer for a person to approve", with(func(c *task.Trial) { c.Guarded, c.Files = 1, 1 }), plain, true,
			"a person has to approve 1 parts of the first, 0 of the second",
		},
		{"fewer files", plain, with(func(c *task.Trial) { c.Files = 1 }), true, "the first changes 3 files, the second 1 file"},
		{"more files", plain, with(func(c *task.Trial) { c.Files = 4 }), false, "the first changes 3 files, the second 4 files"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			two, why := task.Choose(&tc.first, &tc.second)
			if two != tc.two || why != tc.why {
				t.Errorf("Choose = %t, %q; want %t, %q", two, why, tc.two, tc.why)
			}
			// Whatever tells them apart does so from the other side as well.
			if back, _ := task.Choose(&tc.second, &tc.first); back == two && tc.first != tc.second {
				t.Errorf("the other way round the second is chosen = %t, too", back)
			}
		})
	}
}
