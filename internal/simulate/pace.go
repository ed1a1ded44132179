package simulate

import (
	"reflect"
	"time"
)

// atPace returns a copy of p whose durations are a fraction of the planned ones.
func (p *Plan) atPace(pace int) *Plan {
	faster := reflect.New(reflect.TypeFor[Plan]()).Elem()
	faster.Set(reflect.ValueOf(*p))
	hasten(faster, time.Duration(pace))
	q := faster.Interface().(Plan)
	q.Pace = pace
	return &q
}

// takes returns how long a planned time of d takes at the plan's pace.
func (p *Plan) takes(d time.Duration) time.Duration { return d / time.Duration(max(1, p.Pace)) }

// exact reports whether times are exact, since time is virtual.
func (p *Plan) exact() bool { return p.Pace == 0 }

// hasten divides all durations in v, and gives it slices of its own. Negative ones mean
// that there is no bound.
func hasten(v reflect.Value, by time.Duration) {
	switch v.Kind() {
	case reflect.Int64:
		if d, ok := v.Interface().(time.Duration); ok && d > 0 {
			v.SetInt(int64(max(1, d/by)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			hasten(v.Field(i), by)
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		for i := range v.Len() {
			hasten(v.Index(i), by)
		}
	}
}
