// Rounds of CKB-UCB on a finite set in C: the algebra of `floor` in cases.py, with one constraint.
//
// What a compiled core could reach: no ties are broken (the first of the best actions is played),
// nothing is checked, and of a play only its actions are kept. probe.py compiles and measures it.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const double BOUND = 3.0;        // of f and g
static const double STEP = 0.01;        // of the dual variable
static const double CAP = 10.0;         // its most
static const double WIDTH = 0.5;        // of the bounds, times the root of the information gain
static const double LEAST = 1e-14;      // a variance

// What is believed of the f and g of a seed.
typedef struct {
    double *factor;      // rank x rank: the covariance of the weights is factor factor'
    double *mean[2];     // of f and g, per action
    double *variance;    // per action, of both
    double gain;         // of information
    double dual;
} Belief;

static double clip(double value, double low, double high) {
    value = value < high ? value : high;
    return value > low ? value : low;
}

// Return the memory of count zeros from *free, and move it on.
static double *take(double **free, size_t count) {
    double *taken = *free;
    *free += count;
    return taken;
}

// Before round 1: weights of variance 1, means 0, and kernels that are 1 on every action.
static void begin(Belief *belief, int actions, int rank, double **free) {
    belief->factor = take(free, (size_t)rank * rank);
    belief->mean[0] = take(free, actions);
    belief->mean[1] = take(free, actions);
    belief->variance = take(free, actions);
    belief->gain = belief->dual = 0.0;
    for (int i = 0; i < rank; i++) belief->factor[(size_t)i * rank + i] = 1.0;
    for (int k = 0; k < actions; k++) belief->variance[k] = 1.0;
}

// Choose by the upper bound of f, less the dual variable times the lower bound of g; then let the
// dual variable follow this bound.
static int choose(Belief *belief, int actions, double *restrict scores) {
    const double *f = belief->mean[0], *g = belief->mean[1], *variance = belief->variance;
    double width = 1.0 + WIDTH * sqrt(belief->gain + 2.0), dual = belief->dual;
    for (int k = 0; k < actions; k++) {
        double spread = width * sqrt(variance[k]);
        scores[k] = clip(f[k] + spread, -BOUND, BOUND) - dual * clip(g[k] - spread, -BOUND, BOUND);
    }

    int best = 0;
    double most = scores[0];
    for (int k = 1; k < actions; k++) {
        if (scores[k] > most) {
            most = scores[k];
            best = k;
        }
    }
    double bound = clip(g[best] - width * sqrt(variance[best]), -BOUND, BOUND);
    belief->dual = clip(dual + STEP * bound, 0.0, CAP);
    return best;
}

// Learn f and g of an action, observed under noise of variance lam.
static void learn(Belief *belief, int action, const double *observed, int actions, int rank,
                  double lam, const double *features, const double *by_rank, double *work) {
    double *restrict factor = belief->factor;
    double *restrict f = belief->mean[0], *restrict g = belief->mean[1];
    double *restrict variance = belief->variance;
    double *restrict u = work, *restrict lu = work + rank, *restrict column = work + 2 * rank;
    const double *played = features + (size_t)action * rank;

    // What the belief says of the observation: its variance, square + lam.
    memset(u, 0, rank * sizeof *u);
    for (int i = 0; i < rank; i++)
        for (int j = 0; j < rank; j++) u[j] += played[i] * factor[(size_t)i * rank + j];
    double square = 0.0;
    for (int j = 0; j < rank; j++) square += u[j] * u[j];
    double total = sqrt(lam + square);
    belief->gain += 0.5 * log1p(square / lam);

    // The observation's covariance with the weights, and with every action, over its deviation.
    for (int i = 0; i < rank; i++) {
        double sum = 0.0;
        for (int j = 0; j < rank; j++) sum += factor[(size_t)i * rank + j] * u[j];
        lu[i] = sum / total;
    }
    memset(column, 0, actions * sizeof *column);
    for (int i = 0; i < rank; i++) {
        const double *row = by_rank + (size_t)i * actions;
        for (int k = 0; k < actions; k++) column[k] += lu[i] * row[k];
    }

    // Means and variances of the actions, and the factor by a rank-one update.
    double error_f = (observed[0] - f[action]) / total, error_g = (observed[1] - g[action]) / total;
    for (int k = 0; k < actions; k++) {
        f[k] += error_f * column[k];
        g[k] += error_g * column[k];
        double rest = variance[k] - column[k] * column[k];
        variance[k] = rest > LEAST ? rest : LEAST;
    }
    double share = 1.0 / (total + sqrt(lam));
    for (int i = 0; i < rank; i++) {
        double weight = share * lu[i];
        for (int j = 0; j < rank; j++) factor[(size_t)i * rank + j] -= weight * u[j];
    }
}

// Play some rounds of some seeds, in every round all seeds. Arrays are in C's order: features
// (actions, rank), truth (seeds, 2, actions), noise (rounds, seeds, 2), played (rounds, seeds),
// which is written. Return 0, or 1 if there is no memory.
int play(int seeds, int actions, int rank, int rounds, double lam, const double *features,
         const double *truth, const double *noise, int64_t *played) {
    size_t of_belief = (size_t)rank * rank + 3 * (size_t)actions;
    size_t of_set = (size_t)rank * actions + actions + 2 * (size_t)rank + actions;
    double *memory = calloc(seeds * of_belief + of_set, sizeof *memory), *free_memory = memory;
    Belief *beliefs = calloc(seeds, sizeof *beliefs);
    if (!memory || !beliefs) {
        free(memory);
        free(beliefs);
        return 1;
    }
    double *by_rank = take(&free_memory, (size_t)rank * actions);
    double *scores = take(&free_memory, actions);
    double *work = take(&free_memory, 2 * (size_t)rank + actions);
    for (int k = 0; k < actions; k++)
        for (int i = 0; i < rank; i++)
            by_rank[(size_t)i * actions + k] = features[(size_t)k * rank + i];
    for (int s = 0; s < seeds; s++) begin(&beliefs[s], actions, rank, &free_memory);

    for (int t = 0; t < rounds; t++) {
        for (int s = 0; s < seeds; s++) {
            size_t cell = (size_t)t * seeds + s;
            const double *f = truth + 2 * (size_t)s * actions, *g = f + actions;
            int action = choose(&beliefs[s], actions, scores);
            double observed[2] = {f[action] + noise[2 * cell], g[action] + noise[2 * cell + 1]};
            learn(&beliefs[s], action, observed, actions, rank, lam, features, by_rank, work);
            played[cell] = action;
        }
    }
    free(memory);
    free(beliefs);
    return 0;
}
