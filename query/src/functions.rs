//! Functions of values: `time_bucket` and `percentile`.

use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::execution::context::SessionContext;
use datafusion::functions::datetime::date_bin;
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use kymo_time::Duration;

/// Makes the functions known.
pub(crate) fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(TimeBucket {
        signature: Signature::any(2, Volatility::Immutable),
    }));
    context.register_udaf(AggregateUDF::from(Percentile {
        signature: percentile_cont_udaf().signature().clone(),
    }));
}

/// `time_bucket(width, time)`: the beginning of the span of this width, counted from 1970, that a time lies in.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket {
    signature: Signature,
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, DataType::Timestamp(unit, zone)] => Ok(DataType::Timestamp(*unit, zone.clone())),
            [_, time] if time.is_integer() => Ok(DataType::Int64),
            [_, other] => plan_err!("time_bucket needs a time or nanoseconds, not {other}"),
            _ => plan_err!("time_bucket needs a width and a time"),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // All calls become other expressions before they run.
        plan_err!("the width of time_bucket has to be a constant")
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(width, _), time] = &args[..] else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let interval = match width {
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                let nanos = match text.parse::<Duration>() {
                    Ok(duration) => duration.nanos,
                    Err(error) => return plan_err!("the width of time_bucket: {error}"),
                };
                ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(0, 0, nanos)))
            }
            ScalarValue::Int64(Some(nanos)) => {
                ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(0, 0, *nanos)))
            }
            width => width.clone(),
        };
        if let DataType::Timestamp(..) = context.get_data_type(time)? {
            let call = date_bin().call(vec![lit(interval), time.clone()]);
            return Ok(ExprSimplifyResult::Simplified(call));
        }
        let nanos = match interval {
            ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months == 0 => {
                i64::from(interval.days)
                    .saturating_mul(86_400_000_000_000)
                    .saturating_add(interval.nanoseconds)
            }
            _ => 0,
        };
        if nanos <= 0 {
            return plan_err!("the width of time_bucket has to be positive, without months");
        }
        let time = datafusion::logical_expr::cast(time.clone(), DataType::Int64);
        let rest = (time.clone() % lit(nanos) + lit(nanos)) % lit(nanos);
        Ok(ExprSimplifyResult::Simplified(time - rest))
    }
}

/// `percentile(value, percent)`: as in Perfetto, of 0 to 100; between two values in proportion.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    signature: Signature,
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        "percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        percentile_cont_udaf().return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        percentile_cont_udaf().state_fields(args)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        plan_err!("the percentage of percentile has to be a constant")
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|mut call: AggregateFunction, _| {
            let percent = match call.params.args.get(1) {
                Some(Expr::Literal(value, _)) => value.cast_to(&DataType::Float64)?,
                _ => return plan_err!("the percentage of percentile has to be a constant"),
            };
            let ScalarValue::Float64(Some(percent)) = percent else {
                return plan_err!("the percentage of percentile has to be a number");
            };
            if !(0.0..=100.0).contains(&percent) {
                return plan_err!("the percentage of percentile has to be from 0 to 100");
            }
            call.params.args[1] = lit(percent / 100.0);
            call.func = percentile_cont_udaf();
            Ok(Expr::AggregateFunction(call))
        }))
    }
}
