-- Macros of a session: regimes, accuracy above chance, Wilson intervals.

-- 'easy', 'ceiling_bound' or 'scaling_bound' on round(accuracy, 9); null gives null.
CREATE OR REPLACE MACRO regime(accuracy, ceiling := 0.2, easy := 0.9) AS
    CASE
        WHEN accuracy IS NULL THEN NULL
        WHEN round(accuracy, 9) > easy THEN 'easy'
        WHEN round(accuracy, 9) < ceiling THEN 'ceiling_bound'
        ELSE 'scaling_bound'
    END;

-- (z - 1/K) / (1 - 1/K) for K options, negatives kept; null for fewer than two options.
CREATE OR REPLACE MACRO above_chance(z, n_options) AS
    CASE WHEN n_options > 1 THEN (z - 1.0::DOUBLE / n_options) / (1 - 1.0::DOUBLE / n_options) END;

-- Lower end of the 95% Wilson score interval of k out of n; null for n = 0.
CREATE OR REPLACE MACRO wilson_low(k, n) AS
    CASE WHEN n > 0 THEN greatest(0.0::DOUBLE,
        (k + 1.9207294103470621::DOUBLE
            - 1.959963984540054::DOUBLE * sqrt(greatest(0.0::DOUBLE, k * (n - k) / n::DOUBLE) + 0.9603647051735311::DOUBLE))
        / (n + 3.8414588206941245::DOUBLE)) END;

-- Upper end of the 95% Wilson score interval of k out of n; null for n = 0.
CREATE OR REPLACE MACRO wilson_high(k, n) AS
    CASE WHEN n > 0 THEN least(1.0::DOUBLE,
        (k + 1.9207294103470621::DOUBLE
            + 1.959963984540054::DOUBLE * sqrt(greatest(0.0::DOUBLE, k * (n - k) / n::DOUBLE) + 0.9603647051735311::DOUBLE))
        / (n + 3.8414588206941245::DOUBLE)) END;
