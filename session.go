package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// NewSessionID names the nth conversation of an intent's step with an agent: a
// UUID that is the same whenever it is asked for, so that it is in the journal
// before any process knows it. An intent that is deleted and made again has
// others, because created differs.
func NewSessionID(key Key, created time.Time, task TaskID, step Step, n int) string {
	var name []byte
	for _, part := range []string{string(key.Project), string(key.Intent), string(task), string(step)} {
		name = append(append(name, part...), 0)
	}
	name = strconv.AppendInt(append(strconv.AppendInt(name, created.UnixNano(), 10), 0), int64(n), 10)
	sum := sha256.Sum256(name)
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x80 // version 8: made by a scheme of one's own (RFC 9562)
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
