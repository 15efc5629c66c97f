package qdrant

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	client "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zephbot/zephbot/agent/knn"
)

// Fields of a payload; the others are those of the point.
const (
	keyField  = "key"
	hashField = "hash"
)

// Limits of one request. Qdrant accepts 32 MiB.
const (
	pageSize    = 1000 // points per page, keys per removal
	batchPoints = 256
	batchBytes  = 4 << 20 // of vectors
	maxSize     = 65536   // numbers in a vector (Qdrant)
)

// index is a knn.Index in one collection of vectors of equal length. A vector of another length causes the collection
// to be recreated: it comes from another model, so all others will be replaced too.
type index struct {
	*Store
	name string
}

// pointID returns the id of a point, a UUID of version 5 over its key (RFC 9562), because Qdrant does not accept
// strings. The namespace is specific to this project.
func pointID(key string) string {
	namespace := uuid.UUID{
		0x57, 0x33, 0x8e, 0x44, 0x6c, 0x5b, 0x47, 0xfc, 0xba, 0xd6, 0x93, 0xe4, 0xe0, 0xb9, 0x6c, 0xbd,
	}
	return uuid.NewSHA1(namespace, []byte(key)).String()
}

// pointKey returns the key of a point, or false for a point that something else stored.
func pointKey(of *client.PointId, payload map[string]*client.Value) (string, bool) {
	value, ok := payload[keyField]
	key := value.GetStringValue()
	return key, ok && of.GetUuid() == pointID(key)
}

func isMissing(err error) bool { return status.Code(err) == codes.NotFound }

// Hashes implements knn.Index.
func (x *index) Hashes(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	var from *client.PointId
	for {
		points, next, err := x.readPage(ctx, from)
		if isMissing(err) {
			return map[string]string{}, nil
		}
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			if key, ok := pointKey(p.GetId(), p.GetPayload()); ok {
				all[key] = p.GetPayload()[hashField].GetStringValue()
			}
		}
		if next == nil {
			return all, nil
		}
		if proto.Equal(next, from) {
			return nil, fmt.Errorf("read hashes: qdrant at %s returned the same page again", x.where)
		}
		from = next
	}
}

// readPage reads points and returns where the next page begins; nil = this is the last one.
func (x *index) readPage(
	ctx context.Context, from *client.PointId,
) (points []*client.RetrievedPoint, next *client.PointId, err error) {
	err = x.callServer(ctx, "read hashes", func(ctx context.Context) error {
		points, next, err = x.client.ScrollAndOffset(ctx, &client.ScrollPoints{
			CollectionName: x.name, Offset: from, Limit: new(uint32(pageSize)),
			WithPayload: client.NewWithPayloadInclude(keyField, hashField),
			WithVectors: client.NewWithVectorsEnable(false),
		})
		return err
	})
	return points, next, err
}

// Upsert implements knn.Index. The vectors must be of equal length.
func (x *index) Upsert(ctx context.Context, points []knn.Point) error {
	if len(points) == 0 {
		return nil
	}
	size := len(points[0].Vector)
	all := make([]*client.PointStruct, 0, len(points))
	at := map[string]int{}
	for _, p := range points {
		if err := checkPoint(p, size); err != nil {
			return fmt.Errorf("store points: %w", err)
		}
		if i, ok := at[p.Key]; ok { // the last one wins
			all[i] = newPoint(p)
			continue
		}
		at[p.Key] = len(all)
		all = append(all, newPoint(p))
	}
	for batch := range slices.Chunk(all, min(max(batchBytes/(4*size), 1), batchPoints)) {
		if err := x.storeBatch(ctx, batch, size); err != nil {
			return err
		}
	}
	return nil
}

func checkPoint(p knn.Point, size int) error {
	switch {
	case len(p.Vector) == 0 || len(p.Vector) > maxSize:
		return fmt.Errorf("the vector of %q has %d numbers: want 1 to %d", p.Key, len(p.Vector), maxSize)
	case len(p.Vector) != size:
		return fmt.Errorf("vectors of %d and %d numbers at once", size, len(p.Vector))
	case !utf8.ValidString(p.Key) || !utf8.ValidString(p.Hash):
		return fmt.Errorf("key %q or its hash is not UTF-8", p.Key)
	}
	return nil
}

func newPoint(p knn.Point) *client.PointStruct {
	payload := make(map[string]*client.Value, len(p.Payload)+2)
	for name, text := range p.Payload {
		payload[strings.ToValidUTF8(name, "\uFFFD")] = client.NewValueString(strings.ToValidUTF8(text, "\uFFFD"))
	}
	payload[keyField], payload[hashField] = client.NewValueString(p.Key), client.NewValueString(p.Hash)
	return &client.PointStruct{
		Id: client.NewIDUUID(pointID(p.Key)), Vectors: client.NewVectorsDense(knn.Unit(p.Vector)), Payload: payload,
	}
}

// storeBatch writes a batch. It checks the collection only if that fails, because the
// collection usually exists and matches.
func (x *index) storeBatch(ctx context.Context, batch []*client.PointStruct, size int) error {
	err := x.upsertBatch(ctx, batch)
	switch status.Code(err) {
	case codes.NotFound, codes.InvalidArgument:
	default:
		return err
	}
	changed, prepareErr := x.prepareCollection(ctx, size)
	if prepareErr != nil {
		return prepareErr
	}
	if !changed && !isMissing(err) {
		return err
	}
	return x.upsertBatch(ctx, batch)
}

func (x *index) upsertBatch(ctx context.Context, batch []*client.PointStruct) error {
	return x.callServer(writeContext(ctx), "store points", func(ctx context.Context) error {
		_, err := x.client.Upsert(ctx, &client.UpsertPoints{CollectionName: x.name, Points: batch, Wait: new(true)})
		return err
	})
}

// prepareCollection creates the collection for vectors of a length, after removing one for another length.
// changed is false if it matched. If two processes do this at the same time, points of the faster one can be
// lost; its next sync stores them again.
func (x *index) prepareCollection(ctx context.Context, size int) (changed bool, err error) {
	has, err := x.vectorSize(ctx)
	switch {
	case err != nil:
		return false, err
	case has == size:
		return false, nil
	case has != 0:
		err := x.callServer(writeContext(ctx), "remove the old collection", func(ctx context.Context) error {
			_, err := x.client.GetCollectionsClient().Delete(ctx, &client.DeleteCollection{CollectionName: x.name})
			return err
		})
		if err != nil && !isMissing(err) {
			return false, err
		}
	}
	err = x.callServer(writeContext(ctx), "create the collection", func(ctx context.Context) error {
		return x.client.CreateCollection(ctx, &client.CreateCollection{
			CollectionName: x.name,
			VectorsConfig: client.NewVectorsConfig(&client.VectorParams{
				Size:     uint64(size),
				Distance: client.Distance_Cosine,
			}),
		})
	})
	if err == nil {
		return true, nil
	}
	if now, sizeErr := x.vectorSize(ctx); sizeErr == nil && now == size { // another process was faster
		return true, nil
	}
	return false, err
}

// vectorSize returns the length of the collection's vectors; 0 = there is no collection. A collection created
// for another purpose is an error.
func (x *index) vectorSize(ctx context.Context) (int, error) {
	var params *client.VectorParams
	err := x.callServer(ctx, "read the collection", func(ctx context.Context) error {
		info, err := x.client.GetCollectionInfo(ctx, x.name)
		params = info.GetConfig().GetParams().GetVectorsConfig().GetParams()
		return err
	})
	switch {
	case isMissing(err):
		return 0, nil
	case err != nil:
		return 0, err
	case params.GetDistance() != client.Distance_Cosine || params.GetSize() == 0 ||
		params.GetSize() > maxSize ||
		params.GetMultivectorConfig() != nil:
		return 0, fmt.Errorf("collection %s of qdrant at %s is not for vectors compared by cosine; "+
			"remove or rename it", x.name, x.where)
	}
	return int(params.GetSize()), nil
}

// Delete implements knn.Index.
func (x *index) Delete(ctx context.Context, keys []string) error {
	for batch := range slices.Chunk(keys, pageSize) {
		ids := make([]*client.PointId, len(batch))
		for i, key := range batch {
			ids[i] = client.NewIDUUID(pointID(key))
		}
		err := x.callServer(writeContext(ctx), "remove points", func(ctx context.Context) error {
			_, err := x.client.Delete(ctx, &client.DeletePoints{
				CollectionName: x.name, Points: client.NewPointsSelectorIDs(ids), Wait: new(true),
			})
			return err
		})
		if err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

// Search implements knn.Index. It requests an exact search: with few points, or if all of them are wanted, a graph is
// no faster.
func (x *index) Search(ctx context.Context, vector []float32, limit int) ([]knn.Hit, error) {
	if limit <= 0 || len(vector) == 0 {
		return nil, nil
	}
	var points []*client.ScoredPoint
	err := x.callServer(ctx, "search", func(ctx context.Context) (err error) {
		points, err = x.client.Query(ctx, &client.QueryPoints{
			CollectionName: x.name, Query: client.NewQueryDense(knn.Unit(vector)), Limit: new(uint64(limit)),
			Params: &client.SearchParams{Exact: new(true)}, WithPayload: client.NewWithPayloadInclude(keyField),
		})
		return err
	})
	switch {
	case isMissing(err):
		return nil, nil
	case status.Code(err) == codes.InvalidArgument:
		if size, sizeErr := x.vectorSize(ctx); sizeErr == nil && size != len(vector) {
			return nil, nil // points with vectors of another length are skipped
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	hits := make([]knn.Hit, 0, len(points))
	for _, p := range points {
		if key, ok := pointKey(p.GetId(), p.GetPayload()); ok {
			hits = append(hits, knn.Hit{Key: key, Score: p.GetScore()})
		}
	}
	slices.SortStableFunc(hits, func(a, b knn.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Key, b.Key))
	})
	return hits, nil
}
