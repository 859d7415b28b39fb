package disk

import "syscall"

// changedAt returns Stamp.Changed.
func changedAt(s *syscall.Stat_t) (int64, bool) { return s.Ctim.Nano(), true }
